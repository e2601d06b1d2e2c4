#include "kernels/testing/target_scope.h"

#include "kernels/cpu/simd_targets.h"
// Highway comes after simd_targets.h, so that it knows the targets that kernels are compiled for.
#include "hwy/highway.h"

namespace strata::kernels {

std::vector<TestTarget> test_targets() {
  std::vector<TestTarget> targets;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
    targets.push_back({target, hwy::TargetName(target)});
  targets.push_back({HWY_EMU128, hwy::TargetName(HWY_EMU128)});
  return targets;
}

TargetScope::TargetScope(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TargetScope::~TargetScope() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace strata::kernels
