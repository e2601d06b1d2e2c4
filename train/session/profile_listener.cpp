#include "train/session/profile_listener.h"

#include <fmt/core.h>
#include <vector>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/file.h"
#include "machine/measure_cpu.h"
#include "train/session/note_replaced.h"
#include "train/session/profile_report.h"

namespace strata::train {

ProfileListener::ProfileListener(const TrainOptions& options, const RunListeners& listeners)
    : file_(options.profile),
      compares_(options.check_device),
      dtype_(options.dtype),
      listeners_(listeners) {}

void ProfileListener::operator()(const RunEvent& event) {
  if (const auto* equipping = std::get_if<Equipping>(&event)) begin(*equipping);
  if (const auto* closing = std::get_if<Closing>(&event)) write(*closing);
}

void ProfileListener::begin(const Equipping& equipping) {
  if (compares_)
    throw ConfigError("--profile measures steps, --check-device compares them; choose one");
  const std::int64_t enough = equipping.first_step + kLeftOut + 1;
  if (equipping.steps < enough)
    throw ConfigError(fmt::format(
        "--profile leaves out the first {} steps and none is left; give --steps {} or more",
        kLeftOut, enough));
  note_replaced("--profile", file_, listeners_);
  machine_ = equipping.machine;
  const bool on_cpu = machine_.host_is_device();
  if (on_cpu) measure_cpu(machine_, dtype_);
  equipping.observers.push_back(
      &recorder_.emplace(on_cpu ? runtime::TraceOf::queues : runtime::TraceOf::device,
                         equipping.first_step + kLeftOut));
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
  if (host.rank() == 0) write_file_atomically(file_, profile_file(closing.device, ranks));
  listeners_.print("all of it: " + file_ + "\n");
}

}  // namespace strata::train
