# Fails unless the README's example is the text of readme_example.cpp, which is built and run.
#
# cmake -DREADME=README.md -DEXAMPLE=tests/runtime/readme_example.cpp -P readme_example_test.cmake

file(READ ${README} readme)
file(READ ${EXAMPLE} example)
set(begin "<!-- example: tests/runtime/readme_example.cpp -->\n```cpp\n")
string(FIND "${readme}" "${begin}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${README} has no line '<!-- example: tests/runtime/readme_example.cpp -->' and code block")
endif()
string(LENGTH "${begin}" length)
math(EXPR at "${at} + ${length}")
string(SUBSTRING "${readme}" ${at} -1 rest)
string(FIND "${rest}" "```\n" end)
string(SUBSTRING "${rest}" 0 ${end} block)
if(NOT block STREQUAL example)
  message(FATAL_ERROR "The code block in ${README} differs from ${EXAMPLE}: copy the file into the block")
endif()
string(REGEX MATCHALL "\n" lines "${example}")
list(LENGTH lines count)
if(count GREATER 30)
  message(FATAL_ERROR "${EXAMPLE} has ${count} lines; the README promises a short one, 30 at most")
endif()
