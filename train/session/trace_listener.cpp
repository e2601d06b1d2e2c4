#include "train/session/trace_listener.h"

#include <fmt/core.h>

#include "train/session/note_replaced.h"
#include "train/session/trace_file.h"

namespace strata::train {
void TraceListener::operator()(const RunEvent& event) {
  if (const auto* equipping = std::get_if<Equipping>(&event)) begin(*equipping);
  if (const auto* closing = std::get_if<Closing>(&event)) write(closing->ranks);
}

void TraceListener::begin(const Equipping& equipping) {
  using enum runtime::TraceOf;
  note_replaced("--trace", path_, listeners_);
  equipping.observers.push_back(&recorder_.emplace(
      runtime::TraceOptions{.rank = equipping.ranks.rank(),
                            .of = equipping.machine.host_is_device() ? queues : device,
                            .steps = steps_,
                            .zero_ns = common_zero_ns(equipping.ranks)}));
}

void TraceListener::write(comm::Communicator& ranks) const {
  const std::int64_t dropped = write_trace(path_, *recorder_, ranks);
  if (dropped > 0)
    listeners_.note(
        fmt::format("the trace holds the first instructions of each queue; {} found no room: "
                    "choose steps with --trace-steps FIRST:LAST",
                    dropped));
}

}  // namespace strata::train
