# Installs into an empty prefix, then configures, builds and runs consumer/ against it, and two of the examples.
#
# The folders start empty: a header left by an earlier run would hide that it is no longer installed.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${ESKER_BUILD} --prefix ${WORK}/prefix --config ${CONFIG})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=${CONFIG})
run(${CMAKE_COMMAND} --build ${WORK}/build --config ${CONFIG})
run(${WORK}/build/consumer)
run(${WORK}/prefix/bin/esker-info)

# As a user copies the folder: a program that includes elections and atomics beside esker.hpp, and one that
# uses MPI.
file(COPY ${EXAMPLES} DESTINATION ${WORK})
run(${CMAKE_COMMAND} -S ${WORK}/examples -B ${WORK}/build-examples -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=${CONFIG})
set(examples styles)
if(MPI)
  list(APPEND examples with_mpi)
endif()
foreach(name IN LISTS examples)
  run(${CMAKE_COMMAND} --build ${WORK}/build-examples --config ${CONFIG} --target example-${name})
  run(${WORK}/build-examples/${name})
endforeach()
