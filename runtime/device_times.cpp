#include "runtime/device_times.h"

#include <chrono>

namespace strata::runtime {

using kernels::EventUse;

DeviceTimes::DeviceTimes(kernels::Device& device, kernels::Stream& stream)
    : device_(device), epoch_(device.make_event(EventUse::timing)) {
  device_.record(stream, *epoch_);
  device_.wait_on_host(*epoch_);
  epoch_ns_ = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t DeviceTimes::nanoseconds(const kernels::Event& event) const {
  return epoch_ns_ + static_cast<std::int64_t>(device_.milliseconds(*epoch_, event) * 1e6);
}

void DeviceTimes::extend(Spans& spans, std::size_t count) const {
  while (spans.size() < count)
    spans.push_back({device_.make_event(EventUse::timing), device_.make_event(EventUse::timing)});
}

void DeviceTimes::report(const Program& program, const Spans& spans,
                         const std::vector<Observer*>& observers) const {
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (is_host_queue(program.instructions[i].queue)) continue;
    const std::int64_t begin = nanoseconds(*spans[i].begin), end = nanoseconds(*spans[i].end);
    for (Observer* observer : observers)
      observer->executed(program, static_cast<int>(i), begin, end);
  }
}

}  // namespace strata::runtime
