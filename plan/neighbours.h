// Lists what a run could do otherwise to need less memory, cheapest first.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/choices.h"

namespace strata::plan {

/// Returns the largest smaller size that divides `micro_batch`, at most half of it; 1 for 1.
std::int64_t next_smaller_micro_batch(std::int64_t micro_batch);

/// Changes the micro-batch and keeps the number of samples in a step.
void set_micro_batch(Choices& choices, std::int64_t micro_batch);

/// Returns `asked` and then choices that cost more time and mostly less memory: a higher ZeRO stage
/// moves more bytes; smaller micro-batches in more micro-steps make small, slower products;
/// recomputing norms reads and writes once more; checkpointing computes the whole forward pass
/// again. The last ones differ in the stage alone, and need least. `frame` gives the ranks.
std::vector<Choices> cheapest_first(const Choices& asked, const runtime::Plan& frame);

/// The homes that state may move to.
struct Reach {
  bool own_device = true;      ///< the device's memory is not the host's
  Home farthest = Home::disk;  ///< nothing goes farther from the device, unless it was asked to
};

/// Returns choices with state in other homes within `reach`: each leaves less on the device, or in
/// host memory, than those before it. Each comes with all else as it was asked for and the highest
/// stage, then with the least activations.
std::vector<Choices> further_homes(const Choices& asked, const runtime::Plan& frame,
                                   const Reach& reach);

/// A part of a change, in the order in which it is taken back: what costs most time first.
enum class Part : std::uint8_t {
  activations,
  parameters,
  optimizer,
  micro_batch,
  sums,
  order,
  again,
  stage
};
inline constexpr std::array kParts{Part::activations, Part::parameters, Part::optimizer,
                                   Part::micro_batch, Part::sums,       Part::order,
                                   Part::again,       Part::stage};

/// Returns variants of `changed` with less of one part of its change from `asked`, the least first.
std::vector<Choices> with_less(Part part, const Choices& changed, const Choices& asked,
                               bool own_device);

}  // namespace strata::plan
