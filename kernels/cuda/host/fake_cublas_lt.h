// A stand-in for NVIDIA's library: takes the same descriptors and multiplies host memory in plain
// loops, so that what ProductLibrary tells cuBLASLt is tested where there is no device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/cublas_lt.h"

namespace strata::cuda {

/// One at a time: C functions find it by a static pointer. Algorithm i is named 1000 + i.
class FakeCublasLt {
 public:
  FakeCublasLt();
  ~FakeCublasLt();
  FakeCublasLt(const FakeCublasLt&) = delete;
  FakeCublasLt& operator=(const FakeCublasLt&) = delete;

  [[nodiscard]] const CublasLtFunctions& functions() const { return functions_; }

  // What it does:
  int offered = 3;                     ///< algorithms that it proposes
  int noisy = -1;                      ///< this one gives other bits each time
  int refusing = -1;                   ///< this one is proposed, and fails when it runs
  int unchecked = -1;                  ///< this one is proposed, and does not pass the check
  std::size_t workspace_bytes = 1024;  ///< of every algorithm
  bool starts = true;

  // What it saw:
  int alive = 0;             ///< handles, descriptors, layouts, preferences not destroyed
  std::vector<int> ran;      ///< algorithms of products, in order
  std::int32_t compute = 0;  ///< cublasComputeType_t of the last product
  std::map<int, std::uint64_t> preferences;  ///< of the last question
  std::uintptr_t bias_asked = 0;             ///< bias address at that question
  void* workspace = nullptr;                 ///< of the last product

 private:
  CublasLtFunctions functions_;
};

}  // namespace strata::cuda
