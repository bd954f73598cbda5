# A source that must not compile: the compiler's first error says why, as the source's first line has it.
#
# cmake -DSOURCE=file -DCOMPILER=c++ -DINCLUDES=folder;... -P refused_test.cmake
cmake_minimum_required(VERSION 3.25)
file(STRINGS ${SOURCE} first_line LIMIT_COUNT 1)
string(REPLACE "// Refused: " "" expected "${first_line}")
list(TRANSFORM INCLUDES PREPEND -I)
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only ${INCLUDES} ${SOURCE}
                RESULT_VARIABLE status ERROR_VARIABLE errors)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles")
endif()
# Lists of lines break at semicolons and brackets, which messages have.
string(FIND "${errors}" "error: " at)
if(at LESS 0)
  message(FATAL_ERROR "no error in:\n${errors}")
endif()
string(SUBSTRING "${errors}" ${at} -1 rest)
string(REGEX MATCH "^[^\n]*" first_error "${rest}")
string(FIND "${first_error}" "${expected}" found)
if(found LESS 0)
  message(FATAL_ERROR "the first error is\n  ${first_error}\nand does not say\n  ${expected}")
endif()
