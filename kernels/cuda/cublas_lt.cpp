#include "kernels/cuda/cublas_lt.h"

#include <fmt/core.h>

namespace strata::cuda {
namespace {

std::string advice() {
  return fmt::format(
      "install cuBLAS {} (part of the CUDA toolkit, or the Python wheel nvidia-cublas), or name "
      "its "
      "folder in STRATA_CUDA_PATH",
      CUBLAS_VER_MAJOR);
}

}  // namespace

CublasLt::CublasLt(const LibraryEnvironment& environment)
    : library_(DynamicLibrary::open(cuda_library_search(
          {fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)}, environment, advice()))) {
  SymbolReader reader(library_);
  reader.read("cublasLtGetVersion", functions_.get_version);
  reader.read("cublasLtGetStatusName", functions_.get_status_name);
  reader.read("cublasLtCreate", functions_.create);
  reader.read("cublasLtDestroy", functions_.destroy);
  reader.read("cublasLtMatmul", functions_.matmul);
  reader.read("cublasLtMatmulAlgoCheck", functions_.algorithm_check);
  reader.read("cublasLtMatmulAlgoGetHeuristic", functions_.algorithm_heuristic);
  reader.read("cublasLtMatmulDescCreate", functions_.product_create);
  reader.read("cublasLtMatmulDescDestroy", functions_.product_destroy);
  reader.read("cublasLtMatmulDescSetAttribute", functions_.product_set);
  reader.read("cublasLtMatmulPreferenceCreate", functions_.preference_create);
  reader.read("cublasLtMatmulPreferenceDestroy", functions_.preference_destroy);
  reader.read("cublasLtMatmulPreferenceSetAttribute", functions_.preference_set);
  reader.read("cublasLtMatrixLayoutCreate", functions_.layout_create);
  reader.read("cublasLtMatrixLayoutDestroy", functions_.layout_destroy);
  reader.require_all(advice());
}

}  // namespace strata::cuda
