// Guesses the seconds of a step from what its passes compute and move.
#include <algorithm>
#include <cmath>

#include "plan/step_estimate.h"

namespace strata::plan {

using machine::Resource;

double StepEstimates::seconds_of(Resource resource, double bytes) const {
  if (bytes <= 0) return 0;
  // Ranks on one processor read what they move as operands.
  return 1e-9 * static_cast<double>(machine::foreseen_ns(
                    search_.machine,
                    {.resource = resource, .bytes = bytes, .moved_bytes = std::llround(bytes)}));
}

StepEstimates::Moved& StepEstimates::Moved::operator+=(const Moved& more) {
  up += more.up;
  down += more.down;
  reads += more.reads;
  writes += more.writes;
  return *this;
}

/// What leaves in the forward pass comes back in the backward pass, and gradients go down in that
/// alone: no direction of the link is busy for the whole step.
double StepEstimates::step_seconds(const Choices& choices, const State& state,
                                   const MicroBatch& micro_batch) const {
  const double steps = choices.micro_steps;
  const double times_added = choices.adds_sums_up() ? steps : 1;
  const double rounds = choices.layer_major ? 1 : steps;  // over the layers, in each pass
  const double leaving = micro_batch.leaving_bytes * steps;
  const double leaving_to_disk = choices.activations == Home::disk ? leaving : 0;
  const auto part = [](std::int64_t bytes, double times = 1) {
    return times * static_cast<double>(bytes);
  };
  Moved forward, backward, update;
  forward.up = part(state.parameters_away, rounds) + state.parameters_for_host;
  forward.down = leaving;
  forward.reads = part(state.parameters_on_disk, rounds);
  forward.writes = leaving_to_disk;
  backward.up =
      part(state.parameters_away, rounds) + part(state.sums_away, times_added - 1) + leaving;
  backward.down = part(state.sums_away, times_added) + state.sums_for_host;
  backward.reads = part(state.parameters_on_disk, rounds) +
                   part(state.sums_on_disk, times_added - 1) + leaving_to_disk;
  backward.writes = part(state.sums_on_disk, times_added);
  update.reads = part(state.optimizer_on_disk + state.sums_on_disk);
  update.writes = part(state.optimizer_on_disk + state.parameters_on_disk);
  const auto arithmetic = [&](runtime::Pass pass, double times) {
    return times * micro_batch.arithmetic[static_cast<std::size_t>(pass)];
  };
  const double host_updates =  // what the host's threads read and write
      2 * part(state.optimizer_away + state.parameters_away) + part(state.sums_away);
  Moved all = forward;
  all += backward;
  all += update;
  const double peers =
      seconds_of(Resource::peers, state.peer_bytes + rounds * state.peer_bytes_of_round);
  const double host_rate = search_.machine.memory.bytes_per_second;
  const double host = host_rate > 0 ? (all.total() + host_updates) / host_rate : 0;
  const double forward_seconds = pass_seconds(forward, arithmetic(runtime::Pass::forward, steps));
  const double backward_seconds =
      pass_seconds(backward, arithmetic(runtime::Pass::backward, steps));
  const double updates = host_rate > 0 ? host_updates / host_rate : 0;
  // Each update of the host is needed by its layer in the first micro-step, or all of them if
  // layers come first; it hides behind the layers before it. Nothing is before the first one.
  const auto waits = [&](double pass) {
    return std::max(updates * state.first_part_by_host, updates - pass / rounds);
  };
  double waiting = updates;
  if (choices.updates == runtime::Updates::next_step) waiting = waits(forward_seconds);
  if (choices.updates == runtime::Updates::gradient) waiting = waits(backward_seconds);
  if (search_.machine.host_is_device()) waiting = 0;  // updates are arithmetic like any other
  const double passes = forward_seconds + backward_seconds + waiting +
                        arithmetic(runtime::Pass::update, state.updated_part);
  return std::max({passes, pass_seconds(all, 0), host, peers});
}

double StepEstimates::pass_seconds(const Moved& moved, double arithmetic) const {
  const double up = seconds_of(Resource::upload, moved.up);
  const double down = seconds_of(Resource::download, moved.down);
  if (search_.machine.host_is_device())  // copies take a core each
    arithmetic += (up + down) / search_.machine.processor.cores;
  const double drive =
      seconds_of(Resource::disk_read, moved.reads) + seconds_of(Resource::disk_write, moved.writes);
  return std::max({arithmetic, up, down, drive});
}

}  // namespace strata::plan
