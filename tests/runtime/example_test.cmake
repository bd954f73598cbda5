# Fails unless an example on a page is the text of a source, which is built and run.
#
# cmake -DPAGE=README.md -DFOLDER=. -DEXAMPLE=tests/runtime/readme_example.cpp [-DMOST_LINES=30] -P example_test.cmake

file(READ ${PAGE} page)
file(READ ${FOLDER}/${EXAMPLE} example)
set(begin "<!-- example: ${EXAMPLE} -->\n```cpp\n")
string(FIND "${page}" "${begin}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${PAGE} has no line '<!-- example: ${EXAMPLE} -->' and code block")
endif()
string(LENGTH "${begin}" length)
math(EXPR at "${at} + ${length}")
string(SUBSTRING "${page}" ${at} -1 rest)
string(FIND "${rest}" "```\n" end)
string(SUBSTRING "${rest}" 0 ${end} block)
if(NOT block STREQUAL example)
  message(FATAL_ERROR "The code block in ${PAGE} differs from ${EXAMPLE}: copy the file into the block")
endif()
string(REGEX MATCHALL "\n" lines "${example}")
list(LENGTH lines count)
if(MOST_LINES AND count GREATER MOST_LINES)
  message(FATAL_ERROR "${EXAMPLE} has ${count} lines; the page promises a short one, ${MOST_LINES} at most")
endif()
