# Installation: the library, the headers that its users need, and the package that find_package(esker) reads.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# What a user may include, ...
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt public_headers REGEX "^[a-z]")
list(TRANSFORM public_headers REPLACE " .*$" "")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt)
# ... and what those include, no more: a header that is not installed may change without a word.
set(installed)
set(unread ${public_headers})
while(unread)
  list(POP_FRONT unread header)
  if(header IN_LIST installed)
    continue()
  endif()
  list(APPEND installed ${header})
  set(file ${PROJECT_SOURCE_DIR}/include/esker/${header})
  if(NOT EXISTS ${file})
    set(file ${PROJECT_SOURCE_DIR}/${header})
  endif()
  if(NOT EXISTS ${file})
    continue()  # the compiler says it better
  endif()
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/esker/${folder})
  file(STRINGS ${file} includes REGEX "^ *# *include <esker/")
  list(TRANSFORM includes REPLACE "^.*<esker/(.*)>.*$" "\\1")
  list(APPEND unread ${includes})
endwhile()

install(TARGETS esker esker_tasks esker_pipeline esker_transfer EXPORT esker-targets)
install(EXPORT esker-targets NAMESPACE esker:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esker)

set(ESKER_COMPONENTS runtime tasks pipeline transfer)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/esker-config.cmake.in ${PROJECT_BINARY_DIR}/cmake/esker-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esker)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/esker-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/esker-config.cmake ${PROJECT_BINARY_DIR}/cmake/esker-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/EskerCudaToolkit.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esker)
