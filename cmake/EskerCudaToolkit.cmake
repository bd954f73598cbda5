# The CUDA toolkit's targets, here and for users of the installed package.

# CMake 3.25 sets a property of this target, which CUDA 12 and newer have no library for.
if(NOT TARGET CUDA::nvToolsExt)
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(CUDAToolkit REQUIRED)
