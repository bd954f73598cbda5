# Passes when the queue as it is runs clean and its mutant is a data race: cmake -DPROGRAM= -DQUEUE= -DEND= -P
set(ENV{TSAN_OPTIONS} "exitcode=66:halt_on_error=1")

execute_process(COMMAND ${PROGRAM} ${QUEUE} none RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT status STREQUAL "0")
  message(FATAL_ERROR "${QUEUE} as it is: exit ${status}, expected 0\n${out}")
endif()

execute_process(COMMAND ${PROGRAM} ${QUEUE} ${END} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT status STREQUAL "66" OR NOT out MATCHES "WARNING: ThreadSanitizer: data race")
  message(FATAL_ERROR "${QUEUE} without ${END}: exit ${status}, expected 66 and a data race\n${out}")
endif()
