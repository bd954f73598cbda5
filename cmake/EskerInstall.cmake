# Installation: the library, the headers that its users need, and the package that find_package(esker) reads.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# What a user may include, as scripts/check_includes.py has it for the applications, ...
set(public_headers
  esker.hpp
  device/election/fine_grain.hpp
  device/election/per_lane.hpp
  device/election/per_wave.hpp
  device/election/predicated.hpp
  device/error.hpp
  runtime/build_info.hpp
  runtime/command_line.hpp
  runtime/config.hpp
  runtime/parse_value.hpp)
# ... and what those include, no more: a header that is not installed may change without a word.
set(unread ${public_headers})
while(unread)
  list(POP_FRONT unread header)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${header})
    continue()  # the compiler says it better
  endif()
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^ *# *include <esker/")
  list(TRANSFORM includes REPLACE "^.*<esker/(.*)>.*$" "\\1")
  list(REMOVE_ITEM includes ${public_headers})
  list(APPEND public_headers ${includes})
  list(APPEND unread ${includes})
endwhile()

foreach(header IN LISTS public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/esker/${folder})
endforeach()

install(TARGETS esker EXPORT esker-targets)
install(EXPORT esker-targets NAMESPACE esker:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esker)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/esker-config.cmake.in ${PROJECT_BINARY_DIR}/cmake/esker-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esker)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/esker-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/esker-config.cmake ${PROJECT_BINARY_DIR}/cmake/esker-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/EskerCudaToolkit.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esker)
