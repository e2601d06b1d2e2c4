// Choosing the instruction set that CPU kernels use, for tests.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::kernels {

/// An instruction set as Highway numbers and names it.
struct TestTarget {
  std::int64_t number;
  const char* name;
};

/// Those of this machine that kernels are compiled for, and the portable fallback.
std::vector<TestTarget> test_targets();

/// Kernels use one instruction set (a Highway target) while this lives.
class TargetScope {
 public:
  explicit TargetScope(std::int64_t target);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;
};

/// body(name) with each of test_targets() in turn.
template <typename Body>
void with_each_target(const Body& body) {
  for (const TestTarget& target : test_targets()) {
    const TargetScope scope(target.number);
    body(target.name);
  }
}

}  // namespace strata::kernels
