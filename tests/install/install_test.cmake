# Installs a build into an empty prefix, then configures, builds and runs consumer/ against it.
# Of a static library two of the examples, too.
#
# Without SOURCE, the build is ESKER_BUILD; with it, a shared library is configured and built from there first.
# The prefix starts empty: a header left by an earlier run would hide that it is no longer installed.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK}/prefix ${WORK}/build ${WORK}/examples ${WORK}/build-examples ${WORK}/build-unknown)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(SOURCE)
  set(ESKER_BUILD ${WORK}/library)
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${ESKER_BUILD} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${CONFIG} -DBUILD_SHARED_LIBS=ON
      -DESKER_FAST_COMPILE=ON -DESKER_UNITY_BUILD=ON -DESKER_MPI=${MPI} -DESKER_UCX=${UCX})
  run(${CMAKE_COMMAND} --build ${ESKER_BUILD} --config ${CONFIG})
endif()
run(${CMAKE_COMMAND} --install ${ESKER_BUILD} --prefix ${WORK}/prefix --config ${CONFIG})
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=${CONFIG})
run(${CMAKE_COMMAND} --build ${WORK}/build --config ${CONFIG})
run(${WORK}/build/consumer)
run(${WORK}/build/transfer_consumer)
# A component alone, with what it needs and no more.
file(REMOVE_RECURSE ${WORK}/build-transfer)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build-transfer -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=${CONFIG} -DCOMPONENT=transfer)
run(${CMAKE_COMMAND} --build ${WORK}/build-transfer --config ${CONFIG})
run(${WORK}/build-transfer/transfer_consumer)
if(SOURCE)
  # What is hidden and where the version stands.
  file(GLOB libraries ${WORK}/prefix/lib*/libesker.so.*.*.* ${WORK}/prefix/lib/*/libesker.so.*.*.*)
  if(NOT libraries)
    message(FATAL_ERROR "no library with a version in ${WORK}/prefix")
  endif()
  execute_process(COMMAND nm -DC --defined-only ${libraries} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(symbols MATCHES "esker::(Network|Aggregators|NodeBuffers)::")
    message(FATAL_ERROR "the shared library shows ${CMAKE_MATCH_0}")
  endif()
else()
  run(${WORK}/prefix/bin/esker-info)
endif()

# A component that does not exist.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build-unknown -G ${GENERATOR}
                        -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCOMPONENT=ships
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
string(REGEX REPLACE "[ \n]+" " " errors "${errors}")
if(status EQUAL 0 OR NOT errors MATCHES "esker has no component 'ships'. it has: runtime")
  message(FATAL_ERROR "find_package(esker COMPONENTS ships) says: ${errors}")
endif()

if(SOURCE)
  return()
endif()
# As a user copies the folder: a program that names elections, and one that uses MPI.
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
