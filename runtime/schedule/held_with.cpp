#include "runtime/schedule/held_with.h"

#include <cstring>

#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/schedule/held_with.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace strata::runtime::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

std::uint64_t compare(const HeldTimes& wanted, const std::int32_t* begins,
                      const std::int32_t* ends) {
  const hn::CappedTag<std::int32_t, kHeldBlock> d;
  constexpr std::size_t kLanes = hn::MaxLanes(decltype(d)()), kBytes = (kLanes + 7) / 8;
  const auto begin = hn::Set(d, wanted.begin), end = hn::Set(d, wanted.end);
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < kHeldBlock; i += kLanes) {
    const auto mask =
        hn::And(hn::Lt(hn::LoadU(d, begins + i), end), hn::Gt(hn::LoadU(d, ends + i), begin));
    std::uint8_t bytes[8] = {};  // StoreMaskBits writes up to eight
    hn::StoreMaskBits(d, mask, bytes);
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes, kBytes);
    held |= bits << i;
  }
  return held;
}

}  // namespace
}  // namespace strata::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::runtime {
namespace {
HWY_EXPORT(compare);
}  // namespace

HeldWith held_with() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return &HWY_DYNAMIC_DISPATCH(compare);
}

}  // namespace strata::runtime
#endif
