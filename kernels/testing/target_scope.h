// Chooses the instruction set that CPU kernels use, for tests.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::kernels {

/// An instruction set as Highway numbers and names it.
struct TestTarget {
  std::int64_t number;
  const char* name;
};

/// Returns this machine's instruction sets for which kernels are compiled, and the portable one.
std::vector<TestTarget> test_targets();

/// Makes kernels use one instruction set (a Highway target) while it lives.
class TargetScope {
 public:
  explicit TargetScope(std::int64_t target);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;
};

/// Calls body(name) with each of test_targets() in turn.
template <typename Body>
void with_each_target(const Body& body) {
  for (const TestTarget& target : test_targets()) {
    const TargetScope scope(target.number);
    body(target.name);
  }
}

}  // namespace strata::kernels
