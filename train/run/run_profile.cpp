#include "train/run/run_profile.h"

#include <fmt/format.h>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "comm/gather_texts.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "machine/profile_file.h"
#include "machine/this_host.h"
#include "plan/foresee.h"
#include "train/engine/rehearse.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostProfileBytes = 16 << 20;
constexpr std::int64_t kMostProgramBytes = std::int64_t{1} << 31;
/// Runs that are foreseen to be shorter are not worth the seconds of a measurement.
constexpr double kLongRunSeconds = 120;

/// What measured times depend on, for people and comparison.
std::string describe_measured(const RunParts& run) {
  const std::string program = read_whole_file("/proc/self/exe", kMostProgramBytes);
  const machine::Device& device = run.machine.device;
  return fmt::format(
      "{}{}, {} threads, {} ranks of {} on this host, build {:016x}", machine::processor_name(),
      device.names.empty() ? "" : " with " + device.names.front(),
      threads_per_rank(run.options, run.request.context), run.request.context.local_world,
      run.request.context.world, hash_64(std::as_bytes(std::span(program))));
}

std::string file_of(const std::string& of) {
  const std::string folder = profile_folder();
  if (folder.empty()) return "";
  return fmt::format("{}/{:016x}.json", folder, hash_64(std::as_bytes(std::span(of))));
}

/// Rank 0's text of a profile, or empty.
std::string kept_profile(const RunParts& run) {
  const std::string of = describe_measured(run);
  const std::string file = file_of(of);
  if (file.empty() || !is_name_taken(file)) return "";
  try {
    std::string text = read_whole_file(file, kMostProfileBytes);
    if (machine::read_profile(text, file).of == of) return text;
    run.listeners.note(file + " is another machine's or build's: its times are measured again");
  } catch (const Error& error) {
    run.listeners.note(std::string(error.what()) + "; what it says is measured again");
  }
  return "";
}

void keep_profile(const RunParts& run) {
  const std::string of = describe_measured(run);
  const std::string file = file_of(of);
  if (file.empty()) return;
  try {
    fs::create_directories(fs::path(file).parent_path());
    write_file_atomically(file, machine::to_json({of, run.machine.times}));
  } catch (const std::exception& error) {
    run.listeners.note("measured times of instructions are not kept: " + std::string(error.what()));
  }
}

machine::OperationTimes shared(const RunParts& run, const std::string& mine) {
  const std::string text = comm::gather_texts(*run.communicator, run.first ? mine : "").front();
  return text.empty() ? machine::OperationTimes()
                      : machine::read_profile(text, "the profile of rank 0").times;
}

bool is_wanted(const RunParts& run) {
  const TrainOptions& options = run.options;
  if (options.check_device) return false;
  if (options.calibrate != Calibration::automatic) return options.calibrate == Calibration::again;
  return run.meter.foreseen_seconds() * static_cast<double>(options.steps) > kLongRunSeconds;
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
  run.machine.times = shared(run, run.first ? kept_profile(run) : "");
}

void calibrate(RunParts& run) {
  if (!is_wanted(run)) return;
  const std::int64_t begin = monotonic_ns();
  const runtime::TraceOf of =
      run.machine.host_is_device() ? runtime::TraceOf::queues : runtime::TraceOf::device;
  const machine::OperationTimes mine = rehearse(*run.engine, run.machine, of);
  const machine::OperationTimes all = shared(run, machine::to_json({"", mine}));
  if (all.empty()) return;
  run.machine.times.merge(all);
  const double seconds = plan::foresee(run.engine->programs(), run.machine).step_seconds;
  run.meter.foresee(seconds);
  if (!run.first) return;
  run.listeners.print(
      fmt::format("calibration: {} kinds of instructions measured in {:.1f} s; foreseen: {:.3g} s "
                  "per step",
                  all.all().size(), static_cast<double>(monotonic_ns() - begin) * 1e-9, seconds));
  keep_profile(run);
}

}  // namespace strata::train
