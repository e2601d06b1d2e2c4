#include "runtime/execute/device_times.h"

#include <cmath>

#include "core/clock.h"

namespace strata::runtime {

using kernels::EventUse;

DeviceTimes::DeviceTimes(kernels::Device& device, kernels::Stream& stream) : device_(device) {
  for (Start& start : starts_) {
    start.event = device.make_event(EventUse::timing);
    device_.record(stream, *start.event);
  }
  const Start& last = starts_.back();
  device_.wait_on_host(*last.event);
  const std::int64_t now = monotonic_ns();
  for (Start& start : starts_)
    start.ns = now - std::llround(device_.milliseconds(*start.event, *last.event) * 1e6);
}

std::int64_t DeviceTimes::after(const Start& start, const kernels::Event& event) const {
  return start.ns + std::llround(device_.milliseconds(*start.event, event) * 1e6);
}

void DeviceTimes::extend(Spans& spans, std::size_t count) const {
  while (spans.size() < count)
    spans.push_back({device_.make_event(EventUse::timing), device_.make_event(EventUse::timing)});
}

void DeviceTimes::begin(RunNumber run, kernels::Stream& stream) {
  device_.record(stream, *start_of(run).event);
}

void DeviceTimes::report(RunNumber run, const Program& program, const Spans& spans,
                         const std::vector<Observer*>& observers) {
  start_of(run).ns = after(start_of(run - 1), *start_of(run).event);
  const Start& base = start_of(run - kBack);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (is_host_queue(program.instructions[i].queue)) continue;
    const std::int64_t begin = after(base, *spans[i].begin), end = after(base, *spans[i].end);
    for (Observer* observer : observers)
      observer->executed(program, static_cast<int>(i), begin, end);
  }
}

}  // namespace strata::runtime
