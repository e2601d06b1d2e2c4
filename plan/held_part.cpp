#include "plan/held_part.h"

#include <cmath>

#include "plan/alternatives.h"

namespace strata::plan {
namespace {

/// Shares go in sixteenths.
constexpr int kSixteenths = 16;

}  // namespace

std::optional<Choices> with_less_held(const Choices& choices,
                                      const std::function<bool(const Choices&)>& hold) {
  // Parameters on a drive move as a whole, and their state with them.
  if (choices.optimizer == Home::device || choices.parameters == Home::disk || hold(choices))
    return {};
  const auto with = [&](int parts) {
    Choices fewer = choices;
    fewer.optimizer_part = static_cast<double>(parts) / kSixteenths;
    return fewer;
  };
  int held = 0, too_many = static_cast<int>(std::ceil(choices.optimizer_part * kSixteenths));
  while (too_many - held > 1) {
    const int middle = (held + too_many) / 2;
    (hold(with(middle)) ? held : too_many) = middle;
  }
  if (held == 0) return {};
  return with(held);
}

Choices with_held_part(const Choices& choices, const std::function<bool(const Choices&)>& hold) {
  const std::optional<Choices> held = with_less_held(choices, hold);
  return held && !is_listed_part(*held) ? *held : choices;
}

}  // namespace strata::plan
