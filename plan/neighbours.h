// What a run could do otherwise to need less memory, cheapest first.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/choices.h"

namespace strata::plan {

/// `asked` first, then what costs more time and mostly less memory: a higher ZeRO stage moves more
/// bytes; small products, of smaller micro-batches in more micro-steps, run slower; recomputing
/// norms reads and writes once more; checkpointing computes the forward pass again, all of it. The
/// last ones differ in the stage alone, and need least. `frame`: ranks and virtual ranks.
std::vector<Choices> cheapest_first(const Choices& asked, const runtime::Plan& frame);

/// State in other homes: each leaves less on the device, or in host memory, than those before it;
/// with all else as it was asked for and the highest stage, then with the least activations.
/// `own_device`: host memory is other memory than the device's.
std::vector<Choices> further_homes(const Choices& asked, const runtime::Plan& frame,
                                   bool own_device);

/// Of a change, in the order in which it is taken back: what costs most time first.
enum class Part : std::uint8_t {
  activations,
  parameters,
  optimizer,
  micro_batch,
  order,
  again,
  stage
};
inline constexpr std::array kParts{Part::activations, Part::parameters, Part::optimizer,
                                   Part::micro_batch, Part::order,      Part::again,
                                   Part::stage};

/// `changed` with less of a part of its change from `asked`, the least first.
std::vector<Choices> with_less(Part part, const Choices& changed, const Choices& asked,
                               bool own_device);

}  // namespace strata::plan
