#include "train/session/memory_report_listener.h"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "train/config/option_fields.h"
#include "train/planning/memory_target.h"
#include "train/report/report_directory.h"
#include "train/session/note_replaced.h"

namespace strata::train {
namespace {

/// Steps of which each instruction is measured, after those in which memory is touched and
/// libraries are loaded.
constexpr std::int64_t kLeftOut = 2, kMeasured = 5;
constexpr std::size_t kReportedEvents = 100'000;

/// The settings with the values that the run has.
std::vector<ResolvedField> fields_of(std::vector<ResolvedField> asked, TrainOptions options) {
  const std::vector<OptionField> values = option_fields(options);
  for (ResolvedField& field : asked)
    if (const OptionField* value = find_field(values, field.name)) field.value = text_of(*value);
  return asked;
}

}  // namespace

void MemoryReportListener::operator()(const RunEvent& event) {
  if (const auto* planned = std::get_if<Planned>(&event))
    kept_ =
        Kept{planned->programs, planned->machine, planned->seat, planned->device, planned->options};
  if (const auto* equipping = std::get_if<Equipping>(&event)) begin(*equipping);
  if (const auto* done = std::get_if<StepDone>(&event)) add(*done);
  if (const auto* closing = std::get_if<Closing>(&event)) write(*closing);
}

void MemoryReportListener::begin(const Equipping& equipping) {
  const TrainOptions& options = request_.config.options;
  note_replaced("--memory-report", report_files(options.memory_report).back(), listeners_);
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
                             .device_bytes = done.device_bytes});
}

void MemoryReportListener::write(const Closing& closing) {
  is_written_ = true;
  if (device_memory_) measured_.device = device_memory_();
  try {
    write(closing.programs, closing.machine, closing.failure, recorder_ ? &*recorder_ : nullptr);
  } catch (const IoError& error) {
    throw Error(error.exit_code(), fmt::format("no memory report is written: {}", error.what()));
  }
}

void MemoryReportListener::tell(const Refused& refused) {
  if (std::exchange(is_written_, true)) return;
  if (!kept_) {
    listeners_.note("no memory report is written: no Programs were made that it could be about");
    return;
  }
  try {
    write(kept_->programs, kept_->machine, refused.text, nullptr);
  } catch (const std::exception& error) {
    listeners_.warn(fmt::format("no memory report could be written: {}", error.what()));
  }
}

void MemoryReportListener::write(const compile::StepPrograms& programs,
                                 const machine::Machine& machine, const std::string& failure,
                                 const runtime::TraceRecorder* recorder) {
  const ProgramRequest request{request_.model, kept_->options};
  const std::vector<ResolvedField> fields = fields_of(request_.config.fields, kept_->options);
  RunReport report =
      make_report({request, fields, programs, machine, kept_->seat, kept_->device,
                   process_bytes(request.options, machine, request_.context.local_world, programs)},
                  foresee_step(programs, machine));
  report.failure = failure;
  if (recorder != nullptr) add_measured(*recorder, measured_, report.timelines);
  const bool has_times = measured_.last_measured > 0;
  if (recorder != nullptr && !has_times && recorder->dropped() > 0)
    listeners_.note(fmt::format(
        "the memory report has no measured times of instructions: a step has more than {}",
        kReportedEvents));
  report.measured = std::exchange(measured_, {});
  const std::string& directory = request.options.memory_report;
  write_report(directory, report, has_times ? recorder : nullptr);
  listeners_.print("memory report: " + report_files(directory).back());
}

}  // namespace strata::train
