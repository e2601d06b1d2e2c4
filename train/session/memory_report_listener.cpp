#include "train/session/memory_report_listener.h"

#include <utility>

#include "core/clock.h"
#include "train/report/report_directory.h"
#include "train/session/note_replaced.h"

namespace strata::train {
namespace {

/// Steps of which each instruction is measured, after those in which memory is touched and
/// libraries are loaded.
constexpr std::int64_t kLeftOut = 2, kMeasured = 5;
constexpr std::size_t kReportedEvents = 100'000;

}  // namespace

void MemoryReportListener::operator()(const RunEvent& event) {
  if (const auto* equipping = std::get_if<Equipping>(&event)) begin(*equipping);
  if (const auto* done = std::get_if<StepDone>(&event)) add(*done);
  if (const auto* closing = std::get_if<Closing>(&event)) write(*closing);
}

void MemoryReportListener::begin(const Equipping& equipping) {
  const TrainOptions& options = request_.config.options;
  note_replaced("--memory-report", report_files(options.memory_report).back(), listeners_);
  seat_ = equipping.program_communicator.seat();
  device_memory_ = equipping.device_memory;
  const bool on_cpu = equipping.machine.host_is_device();
  if (!on_cpu && options.trace.empty() && options.profile.empty()) return;
  using enum runtime::TraceOf;
  const std::int64_t first = equipping.first_step + kLeftOut + 1;  // counted from 1
  equipping.observers.push_back(
      &recorder_.emplace(runtime::TraceOptions{.rank = equipping.ranks.rank(),
                                               .of = on_cpu ? queues : device,
                                               .steps = {first, first + kMeasured - 1},
                                               .capacity_per_queue = kReportedEvents,
                                               .zero_ns = monotonic_ns()}));
}

void MemoryReportListener::add(const StepDone& done) {
  measured_.steps.push_back({.step = done.step,
                             .loss = done.metrics.loss,
                             .learning_rate = done.metrics.learning_rate,
                             .gradient_norm = done.metrics.gradient_norm,
                             .seconds = done.seconds,
                             .tokens_per_second = done.tokens_per_second,
                             .peak_rss_bytes = done.peak_rss_bytes,
                             .device_bytes = device_bytes()});
}

std::optional<std::int64_t> MemoryReportListener::device_bytes() {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  const std::int64_t now = monotonic_ns();
  if (!device_memory_ || (looked_ns_ != 0 && now - looked_ns_ < kSecondNs)) return device_bytes_;
  looked_ns_ = now;
  if (const auto facts = device_memory_()) device_bytes_ = facts->total_bytes - facts->free_bytes;
  return device_bytes_;
}

void MemoryReportListener::write(const Closing& closing) {
  const ProgramRequest programs{request_.model, request_.config.options};
  RunReport report = make_report(
      {programs, request_.config.fields, closing.programs, closing.machine, seat_, closing.device},
      foresee_step(closing.programs, closing.machine));
  if (device_memory_) measured_.device = device_memory_();
  if (recorder_) add_measured(*recorder_, measured_, report.timelines);
  const bool has_times = measured_.last_measured > 0;
  report.measured = std::exchange(measured_, {});
  const std::string& directory = programs.options.memory_report;
  write_report(directory, report, has_times ? &*recorder_ : nullptr);
  listeners_.print("memory report: " + report_files(directory).back());
}

}  // namespace strata::train
