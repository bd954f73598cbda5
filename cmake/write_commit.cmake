# cmake -DSOURCE=folder -DOUT=file -P write_commit.cmake: a header with the commit of a checkout, "-dirty" behind it where
# files have changed since. It is left alone while it is right. Run in each build: figures are named for it.
cmake_minimum_required(VERSION 3.25)
find_package(Git QUIET)
set(commit "")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define ESKER_BUILT_COMMIT \"@commit@\"\n" @ONLY)
