# Device languages: how a source that holds kernels is compiled for the GPU back end of this build.
#
#   esker_device_sources(TARGET FILE...)     adds sources with kernels to a target: C++ in a CPU build,
#                                            CUDA or HIP otherwise
#   esker_device_test(NAME SOURCES FILE...)  one test body, run on the CPU in a CPU build (label unit) and on the
#                                            GPU in a CUDA or HIP build (NAME_gpu, label gpu); without a GPU
#                                            that one is skipped
#   esker_assemble(TARGET...)                kernels as machine code even where ESKER_FAST_COMPILE is on
#   esker_gpu_test(NAME SOURCES FILE...)     NAME_gpu alone, for what makes no sense on the CPU

set(ESKER_HIP_ARCHITECTURES "gfx90a;gfx1030" CACHE STRING "AMD targets: one with 64 lanes a wave, one with 32")

if(ESKER_DEVICE STREQUAL "CUDA")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  enable_language(CUDA)
  include(EskerCudaToolkit)
  # The standard by hand: CMake 3.25 does not know it for this compiler. A kernel may be a lambda, and
  # constexpr functions of the standard library are for device code too. 20014: a template for both sides
  # calls host functions where it is instantiated for the host alone.
  set(esker_cuda_flags -std=c++20 --extended-lambda --expt-relaxed-constexpr -diag-suppress=20014)
  # Three quarters of the time is ptxas. Its own --Ofast-compile would give each kernel the scratchpad of all
  # kernels of its file, which is more than there is. So kernels stay PTX, unless esker_assemble() names their target.
  if(ESKER_FAST_COMPILE)
    set(esker_cuda_architectures ${CMAKE_CUDA_ARCHITECTURES})
    list(TRANSFORM CMAKE_CUDA_ARCHITECTURES APPEND -virtual)
    set(esker_fast_cuda_flags --Ofast-compile=min -Xcompiler=-O0)
  endif()
elseif(ESKER_DEVICE STREQUAL "HIP")
  # A compiler call for each file: CMake's HIP language wants a ROCm tree, which Debian's hipcc is not.
  find_program(ESKER_HIPCC hipcc REQUIRED)
  find_library(ESKER_HIP_RUNTIME amdhip64 REQUIRED)
  # hipcc is a script: what ccache has to compare is the version of the compiler that it calls.
  set(esker_hipcc ${ESKER_HIPCC})
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
    set(esker_hipcc ${CMAKE_COMMAND} -E env "CCACHE_COMPILERCHECK=%compiler% --version" ${CMAKE_CXX_COMPILER_LAUNCHER} ${ESKER_HIPCC})
  endif()
elseif(NOT ESKER_DEVICE MATCHES "^(CPU|SIMULATED)$")
  message(FATAL_ERROR "ESKER_DEVICE is '${ESKER_DEVICE}': it is CPU, CUDA, HIP or SIMULATED")
endif()

function(esker_device_sources target)
  if(ESKER_DEVICE STREQUAL "CPU")
    target_sources(${target} PRIVATE ${ARGN})
    return()
  endif()
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(GET file STEM stem)
    # The language belongs to a source file, and the same file may be C++ in another target.
    set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/${target}.${stem})
    if(ESKER_DEVICE STREQUAL "CUDA")
      file(CONFIGURE OUTPUT ${wrapper}.cu CONTENT "#include \"${file}\"\n")
      set_property(SOURCE ${wrapper}.cu PROPERTY OBJECT_DEPENDS ${file})
      target_sources(${target} PRIVATE ${wrapper}.cu)
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${esker_cuda_flags};${esker_fast_cuda_flags}>")
      # fmt 9 takes nvcc for a compiler without constexpr functions.
      target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
      target_link_libraries(${target} PRIVATE CUDA::cudart_static)
    elseif(ESKER_DEVICE STREQUAL "SIMULATED")
      file(CONFIGURE OUTPUT ${wrapper}.simulated.cpp CONTENT "#include \"${file}\"\n")
      set_property(SOURCE ${wrapper}.simulated.cpp TARGET_DIRECTORY ${target} PROPERTY OBJECT_DEPENDS ${file})
      # Scratchpad is bytes that become what a kernel declares; pragmas are for device compilers.
      set_source_files_properties(${wrapper}.simulated.cpp TARGET_DIRECTORY ${target} PROPERTIES
        COMPILE_DEFINITIONS ESKER_SIMULATED_PASS=1 COMPILE_OPTIONS "-fno-strict-aliasing;-Wno-unknown-pragmas" SKIP_UNITY_BUILD_INCLUSION ON)
      target_sources(${target} PRIVATE ${wrapper}.simulated.cpp)
    else()
      set(includes "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
      set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
      list(TRANSFORM ESKER_HIP_ARCHITECTURES PREPEND --offload-arch= OUTPUT_VARIABLE architectures)
      add_custom_command(OUTPUT ${wrapper}.hip.o
        # hipcc asks for the GPUs of this machine unless it is told the targets, which it is.
        COMMAND ${esker_hipcc} -std=c++20 -O$<IF:$<BOOL:${ESKER_FAST_COMPILE}>,0,2> -fPIC -Wall -Wextra -Wshadow
                ${architectures}
                "$<$<BOOL:${includes}>:-I$<JOIN:$<REMOVE_DUPLICATES:${includes}>,;-I>>"
                "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
                -MD -MF ${wrapper}.hip.d -MT ${wrapper}.hip.o
                -x hip -c ${file} -o ${wrapper}.hip.o
        DEPENDS ${file} DEPFILE ${wrapper}.hip.d
        COMMAND_EXPAND_LISTS VERBATIM COMMENT "Compiling ${stem} for HIP")
      # The target may be another folder's, which sees neither the command nor the file's properties.
      add_custom_target(${target}.${stem}.hip DEPENDS ${wrapper}.hip.o)
      add_dependencies(${target} ${target}.${stem}.hip)
      set_source_files_properties(${wrapper}.hip.o TARGET_DIRECTORY ${target}
                                  PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
      target_sources(${target} PRIVATE ${wrapper}.hip.o)
      target_link_libraries(${target} PRIVATE ${ESKER_HIP_RUNTIME})
    endif()
  endforeach()
  target_compile_definitions(${target} PRIVATE ESKER_DEVICE_${ESKER_DEVICE}=1)
endfunction()

function(esker_assemble)
  if(ESKER_DEVICE STREQUAL "CUDA" AND ESKER_FAST_COMPILE)
    set_target_properties(${ARGN} PROPERTIES CUDA_ARCHITECTURES "${esker_cuda_architectures}")
  endif()
endfunction()

function(esker_device_test name)
  cmake_parse_arguments(arg "PLAIN" "TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  set(plain)
  if(arg_PLAIN)
    set(plain PLAIN)
  endif()
  if(ESKER_DEVICE STREQUAL "CPU")
    esker_test(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES} TIMEOUT ${arg_TIMEOUT} LABELS unit ${plain})
  else()
    esker_gpu_test(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES} TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

function(esker_gpu_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(ESKER_DEVICE STREQUAL "CPU")
    return()
  endif()
  if(ESKER_DEVICE STREQUAL "SIMULATED")  # it is always there
    add_executable(${name}_gpu)
    target_link_libraries(${name}_gpu PRIVATE GTest::gtest_main)
  else()
    add_executable(${name}_gpu ${PROJECT_SOURCE_DIR}/tests/device/gpu_main.cpp)
  endif()
  target_include_directories(${name}_gpu PRIVATE ${PROJECT_SOURCE_DIR}/tests/device)
  target_compile_definitions(${name}_gpu PRIVATE ESKER_TEST_${ESKER_DEVICE}=1)
  target_link_libraries(${name}_gpu PRIVATE esker_flags esker::esker GTest::gtest fmt::fmt ${arg_LIBRARIES})
  esker_device_sources(${name}_gpu ${arg_SOURCES})
  add_test(NAME ${name}_gpu COMMAND $<TARGET_FILE:${name}_gpu>)
  set_tests_properties(${name}_gpu PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS gpu SKIP_RETURN_CODE 77)
endfunction()
