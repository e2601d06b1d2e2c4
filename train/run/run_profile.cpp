#include "train/run/run_profile.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/gather_texts.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/own_files.h"
#include "kernels/cpu/cpu_features.h"
#include "machine/profile_folder.h"
#include "machine/this_host.h"
#include "plan/foresee.h"
#include "train/engine/observed_times.h"
#include "train/engine/rehearse.h"

namespace strata::train {
namespace {

/// Runs that are foreseen to be shorter are not worth the seconds of a measurement.
constexpr double kLongRunSeconds = 120;
/// Steps in which instructions are timed, after those in which memory is touched and libraries are
/// loaded; and the most instructions of a queue of which times are remembered.
constexpr std::int64_t kLeftOut = 2, kObserved = 3;
constexpr std::size_t kMostObserved = 100'000;

/// Describes what measured times depend on, for people and comparison; empty if it is not known.
std::string describe_measured(const RunParts& run) {
  const RankContext& context = run.request.context;
  try {
    return fmt::format("{}, {}, {}, {} threads, {} of {} ranks on this host by {}{}{}{:016x}",
                       machine::processor_name(), kernels::chosen_instruction_sets(),
                       run.device->computer(), threads_per_rank(run.options, context),
                       context.local_world, context.world, run.device->communicator().backend(),
                       run.options.tf32 ? ", TF32" : "", machine::kBuildMark, hash_of_program());
  } catch (const Error& error) {
    run.listeners.note("measured times of instructions are neither read nor kept: " +
                       std::string(error.what()));
    return "";
  }
}

/// Rank 0's description, made when it is first needed: it reads the whole program's file.
const std::string& measured_of(RunParts& run) {
  if (!run.measured_of) run.measured_of = describe_measured(run);
  return *run.measured_of;
}

/// Returns what is kept for this run, and notes what cannot be used.
std::optional<machine::Profile> kept_profile(RunParts& run) {
  if (!is_name_taken(profile_folder())) return {};  // nobody has kept anything
  machine::ProfileFolder::Found found =
      machine::ProfileFolder(profile_folder()).find(measured_of(run));
  // Later attempts find the same.
  if (!found.note.empty() && run.request.context.attempt == 0) run.listeners.note(found.note);
  return std::move(found.profile);
}

/// Calls add(profile) with what is kept by now, maybe by a run beside this one, and keeps the
/// result. A file that cannot be used, which kept_profile has noted, is replaced.
template <typename Add>
void keep_profile(RunParts& run, const Add& add) {
  const std::string& of = measured_of(run);
  if (of.empty()) return;
  const machine::ProfileFolder folder(profile_folder());
  machine::Profile profile = folder.find(of).profile.value_or(machine::Profile{of, {}});
  add(profile);
  try {
    folder.keep(profile);
  } catch (const Error& error) {
    run.listeners.note("measured times of instructions are not kept: " + std::string(error.what()));
  }
}

std::string describe_observed(std::size_t kinds) {
  return kinds == 0 ? "" : fmt::format(", those of {} as steps showed them", kinds);
}

machine::OperationTimes shared(const RunParts& run, const std::string& mine) {
  const std::string text = comm::gather_texts(*run.communicator, run.first ? mine : "").front();
  return text.empty() ? machine::OperationTimes()
                      : machine::read_profile(text, "the profile of rank 0").times;
}

/// True if this run measures. The same on all ranks, which foresee the same.
bool measures(const RunParts& run, double foreseen_seconds) {
  const TrainOptions& options = run.options;
  if (options.check_device) return false;
  if (options.calibrate != Calibration::automatic) return options.calibrate == Calibration::again;
  const std::int64_t done = run.steps_before();
  return foreseen_seconds * static_cast<double>(options.steps - done) > kLongRunSeconds;
}

}  // namespace

std::string profile_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return std::string(cache) + "/strata/profiles";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache/strata/profiles";
  return "";
}

void read_profile(RunParts& run) {
  if (run.options.calibrate != Calibration::automatic) return;
  std::string text;
  if (run.first)
    if (const auto kept = kept_profile(run)) {
      text = machine::to_json(*kept);
      const machine::ProfileFolder folder(profile_folder());
      run.listeners.print(fmt::format("foreseen by times of {} kinds of instructions in {}{}",
                                      kept->times.all().size(), folder.file_of(kept->of),
                                      describe_observed(kept->observed.size())));
    }
  run.machine.times = shared(run, text);
}

double foresee_together(const RunParts& run, const compile::StepPrograms& programs) {
  std::int64_t ns = 0;
  if (run.first) ns = std::llround(1e9 * plan::foresee(programs, run.machine).step_seconds);
  return 1e-9 * static_cast<double>(comm::gather_numbers(*run.communicator, ns).front());
}

void calibrate(RunParts& run) {
  if (!measures(run, run.meter.foreseen_seconds())) return;
  const std::int64_t begin = monotonic_ns();
  const runtime::TraceOf of =
      run.machine.host_is_device() ? runtime::TraceOf::queues : runtime::TraceOf::device;
  const machine::OperationTimes mine = rehearse(*run.engine, run.machine, of);
  const machine::OperationTimes all = shared(run, machine::to_json({"", mine}));
  if (all.empty()) return;
  run.machine.times.merge(all);
  const double seconds = foresee_together(run, run.engine->programs());
  run.meter.foresee(seconds);
  if (!run.first) return;
  run.listeners.print(
      fmt::format("calibration: {} kinds of instructions measured in {:.1f} s; foreseen: {:.3g} s "
                  "per step",
                  all.all().size(), static_cast<double>(monotonic_ns() - begin) * 1e-9, seconds));
  const bool anew = run.options.calibrate == Calibration::again;
  keep_profile(run, [&](machine::Profile& kept) { kept.add_rehearsed(all, anew); });
}

void observe_first_steps(RunParts& run, std::vector<runtime::Observer*>& observers,
                         double foreseen_seconds) {
  if (!run.first || !run.machine.host_is_device() || !measures(run, foreseen_seconds)) return;
  const std::int64_t done = run.steps_before();
  const std::int64_t first = done + kLeftOut + 1;  // counted from 1
  observers.push_back(&run.first_steps.emplace(runtime::TraceOptions{
      .steps = {first, first + kObserved - 1}, .capacity_per_queue = kMostObserved}));
}

void keep_observed(RunParts& run) {
  if (!run.first_steps) return;
  const machine::OperationTimes seen =
      observed_times(*run.first_steps, run.engine->programs(), run.machine);
  if (seen.empty()) return;  // the run ended before
  machine::Machine refined = run.machine;
  refined.times.merge(seen);
  run.listeners.print(
      fmt::format("refined: times of {} kinds of instructions in its first steps are kept; with "
                  "them {:.3g} s per step are foreseen",
                  seen.all().size(), plan::foresee(run.engine->programs(), refined).step_seconds));
  keep_profile(run, [&](machine::Profile& kept) { kept.add_observed(seen); });
}

}  // namespace strata::train
