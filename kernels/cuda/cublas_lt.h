// cuBLASLt, opened at run time, as a table of the functions that matrix products need.
#pragma once

#include <cublasLt.h>

#include <string>

#include "core/dynamic_library.h"
#include "kernels/cuda/library_folders.h"

namespace strata::cuda {

struct CublasLtFunctions {
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtGetStatusName) get_status_name = nullptr;
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  decltype(&::cublasLtMatmulAlgoCheck) algorithm_check = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) algorithm_heuristic = nullptr;
  decltype(&::cublasLtMatmulDescCreate) product_create = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) product_destroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) product_set = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
};

/// The open library of the major version that this program was compiled for.
class CublasLt {
 public:
  /// Throws HostError when the library, or a function in it, is missing.
  explicit CublasLt(const LibraryEnvironment& environment);

  [[nodiscard]] const CublasLtFunctions& functions() const { return functions_; }
  [[nodiscard]] const std::string& path() const { return library_.path(); }
  /// 130100 for 13.1.0.
  [[nodiscard]] std::size_t version() const { return functions_.get_version(); }

 private:
  DynamicLibrary library_;
  CublasLtFunctions functions_;
};

}  // namespace strata::cuda
