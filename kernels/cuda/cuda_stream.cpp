#include "kernels/cuda/cuda_stream.h"

namespace strata::cuda {

CudaStream::CudaStream() {
  STRATA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

// An error here was caused by earlier work and has been reported where that was waited for.
CudaStream::~CudaStream() { (void)cudaStreamDestroy(stream_); }

}  // namespace strata::cuda
