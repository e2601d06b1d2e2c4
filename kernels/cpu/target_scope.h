// Choosing the instruction set that CPU kernels use, for tests.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// Kernels use one instruction set (a Highway target) while this lives.
class TargetScope {
 public:
  explicit TargetScope(std::int64_t target);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;
};

}  // namespace strata::kernels
