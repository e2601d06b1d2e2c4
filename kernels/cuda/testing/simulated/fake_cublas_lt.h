// A stand-in for cuBLASLt: it takes the same descriptors and multiplies host memory in plain loops,
// so that what ProductLibrary tells the library is tested without a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/cublas_lt.h"

namespace strata::cuda {

/// Only one exists at a time, since C functions find it. The first word of algorithm i is 1000 + i.
class FakeCublasLt {
 public:
  FakeCublasLt();
  ~FakeCublasLt();
  FakeCublasLt(const FakeCublasLt&) = delete;
  FakeCublasLt& operator=(const FakeCublasLt&) = delete;

  [[nodiscard]] const CublasLtFunctions& functions() const { return functions_; }

  // Settings of its behaviour.
  int offered = 3;                     ///< number of algorithms that it proposes
  int noisy = -1;                      ///< the algorithm that gives other bits each time
  int refusing = -1;                   ///< the algorithm that is proposed, and fails when it runs
  int unchecked = -1;                  ///< the algorithm that is proposed, and fails the check
  std::size_t workspace_bytes = 1024;  ///< that every algorithm needs
  bool starts = true;

  // Records of its calls.
  int alive = 0;             ///< handles, descriptors, layouts, preferences not destroyed
  std::vector<int> ran;      ///< algorithms of products, in order
  std::int32_t compute = 0;  ///< cublasComputeType_t of the last product
  std::map<int, std::uint64_t> preferences;  ///< those of the last call of the heuristic
  std::uintptr_t bias_asked = 0;             ///< bias address in that call
  void* workspace = nullptr;                 ///< that of the last product

 private:
  CublasLtFunctions functions_;
};

}  // namespace strata::cuda
