#include "train/session/profile_listener.h"

#include <fmt/core.h>
#include <algorithm>
#include <vector>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/file.h"
#include "core/format_bytes.h"
#include "machine/measure_cpu.h"
#include "train/planning/memory_target.h"
#include "train/session/note_replaced.h"
#include "train/session/profile_report.h"

namespace strata::train {
namespace {

/// Copies of fewer bytes may stay in caches.
constexpr std::int64_t kBeyondCaches = std::int64_t{128} << 20;

}  // namespace

ProfileListener::ProfileListener(const TrainOptions& options, const RunListeners& listeners)
    : options_(options), listeners_(listeners) {}

void ProfileListener::operator()(const RunEvent& event) {
  if (const auto* equipping = std::get_if<Equipping>(&event)) begin(*equipping);
  if (const auto* closing = std::get_if<Closing>(&event)) write(*closing);
}

void ProfileListener::begin(const Equipping& equipping) {
  if (options_.check_device)
    throw ConfigError("--profile measures steps, --check-device compares them; choose one");
  const std::int64_t enough = equipping.first_step + kLeftOut + 1;
  if (equipping.steps < enough)
    throw ConfigError(fmt::format(
        "--profile leaves out the first {} steps and none is left; give --steps {} or more",
        kLeftOut, enough));
  note_replaced("--profile", options_.profile, listeners_);
  machine_ = equipping.machine;
  const bool on_cpu = machine_.host_is_device();
  if (on_cpu) measure(equipping.local_ranks);
  equipping.observers.push_back(
      &recorder_.emplace(on_cpu ? runtime::TraceOf::queues : runtime::TraceOf::device,
                         equipping.first_step + kLeftOut));
}

/// Measures what the CPU can do, in memory that the engine has not taken yet.
void ProfileListener::measure(int local_ranks) {
  const std::int64_t most = machine::memory_to_measure() / local_ranks;
  const std::int64_t copied =
      measure_cpu(machine_, options_.dtype,
                  std::min(most, bytes_to_measure_in(options_, machine_, local_ranks)));
  if (copied == 0)
    return listeners_.note(
        "--profile compares with typical rates of a CPU: there is too little memory to measure "
        "this one's");
  if (copied < kBeyondCaches)
    listeners_.note(fmt::format(
        "--profile measured the rate of this CPU's memory with copies of {}, for which there is "
        "room; from caches they are faster, and the bounds of what works on memory too low",
        format_bytes(copied)));
}

void ProfileListener::write(const Closing& closing) const {
  const ProfileReport report = make_report(*recorder_, machine_);
  if (report.steps == 0)  // the same on all ranks
    return listeners_.print(
        fmt::format("no profile: the run ended within the first {} steps\n", kLeftOut));
  comm::Communicator& host = closing.ranks;
  const std::vector<std::string> ranks = comm::gather_texts(host, to_json(report, host.rank()));
  listeners_.print(describe(report) +
                   (machine_.host_is_device()
                        ? ""
                        : "each instruction was launched by itself: a run without --profile "
                          "records steps and is faster\n"));
  if (host.rank() == 0)
    write_file_atomically(options_.profile, profile_file(closing.device, ranks));
  listeners_.print("all of it: " + options_.profile + "\n");
}

}  // namespace strata::train
