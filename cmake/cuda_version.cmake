# Refuses a CUDA toolkit, of CUDAToolkit_VERSION, that lacks what kernels/cuda calls: the newest is
# cudaGetDriverEntryPointByVersion. The test cuda_version_test runs this file alone.
set(STRATA_OLDEST_CUDA 12.5)
if(CUDAToolkit_VERSION VERSION_LESS STRATA_OLDEST_CUDA)
  message(FATAL_ERROR "nvcc on PATH belongs to CUDA ${CUDAToolkit_VERSION}, but Strata needs CUDA ${STRATA_OLDEST_CUDA} or newer; "
    "put a newer toolkit's nvcc first on PATH (or set CUDACXX to it), or build for CPUs alone with -DSTRATA_CUDA=OFF")
endif()
