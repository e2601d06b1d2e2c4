// Checks that times stay exact in long runs, on a device that measures as CUDA does.
#include "runtime/execute/device_times.h"

#include <gtest/gtest.h>

#include <map>

#include "kernels/cuda/testing/simulated/simulated_device.h"

namespace strata::runtime {
namespace {

/// Has a clock that the test sets; measures milliseconds between two events as float.
class ClockedDevice final : public cuda::SimulatedDevice {
 public:
  ClockedDevice() : SimulatedDevice(cuda::ThreadOrder::forward) {}
  void record(kernels::Stream& stream, kernels::Event& event) override {
    SimulatedDevice::record(stream, event);
    recorded_ns_[&event] = now_ns;
  }
  [[nodiscard]] double milliseconds(const kernels::Event& from, const kernels::Event& to) override {
    const std::int64_t ns = recorded_ns_.at(&to) - recorded_ns_.at(&from);
    return static_cast<double>(static_cast<float>(static_cast<double>(ns) * 1e-6));
  }
  std::int64_t now_ns = 0;

 private:
  std::map<const kernels::Event*, std::int64_t> recorded_ns_;
};

class Told final : public Observer {
 public:
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void executed(const Program&, int, std::int64_t begin, std::int64_t end) override {
    begin_ns = begin;
    end_ns = end;
  }
  std::int64_t begin_ns = 0, end_ns = 0;
};

TEST(DeviceTimes, StayExactForHours) {
  constexpr std::int64_t kRuns = 50'000, kRun_ns = 200'000'000;  // 2.8 hours
  constexpr std::int64_t kBegin_ns = 30'000, kEnd_ns = 31'700;
  ClockedDevice device;
  const auto stream = device.make_stream();
  DeviceTimes times(device, *stream);
  Program program;
  program.instructions.emplace_back();
  std::vector<DeviceTimes::Spans> places(3);
  Told told;
  std::int64_t first_ns = 0;
  for (std::int64_t run = 0; run < kRuns; ++run) {
    if (run >= 2) {  // as in the executor: a run is confirmed when the second after it begins
      times.report(run - 2, program, places[static_cast<std::size_t>(run - 2) % 3], {&told});
      if (run == 2) first_ns = told.begin_ns;
      ASSERT_NEAR(told.end_ns - told.begin_ns, kEnd_ns - kBegin_ns, 100) << run;
      ASSERT_NEAR(told.begin_ns - first_ns, (run - 2) * kRun_ns, 200'000) << run;
    }
    DeviceTimes::Spans& spans = places[static_cast<std::size_t>(run) % 3];
    times.extend(spans, 1);
    device.now_ns = run * kRun_ns;
    times.begin(run, *stream);
    device.now_ns += kBegin_ns;
    device.record(*stream, *spans[0].begin);
    device.now_ns = run * kRun_ns + kEnd_ns;
    device.record(*stream, *spans[0].end);
  }
}

}  // namespace
}  // namespace strata::runtime
