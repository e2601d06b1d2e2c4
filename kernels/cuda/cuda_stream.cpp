#include "kernels/cuda/cuda_stream.h"

namespace strata::cuda {

CudaStream::CudaStream() {
  STRATA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

// An error here comes from earlier work, and whoever waited for that work got it.
CudaStream::~CudaStream() { (void)cudaStreamDestroy(stream_); }

}  // namespace strata::cuda
