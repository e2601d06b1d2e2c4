#include "train/run/run_profile.h"

#include <utility>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/file.h"
#include "machine/measure_cpu.h"
#include "train/run/profile_report.h"

namespace strata::train {

RunProfile::RunProfile(const TrainOptions& options, machine::Machine machine,
                       std::int64_t first_step)
    : file_(options.profile),
      machine_(std::move(machine)),
      recorder_(machine_.host_is_device() ? runtime::TraceOf::queues : runtime::TraceOf::device,
                first_step + kLeftOut) {
  if (options.check_device)
    throw ConfigError("--profile measures steps, --check-device compares them; choose one");
  const std::int64_t enough = first_step + kLeftOut + 1;
  if (options.steps < enough)
    throw ConfigError("--profile leaves out the first " + std::to_string(kLeftOut) +
                      " steps and none is left; give --steps " + std::to_string(enough) +
                      " or more");
  if (machine_.host_is_device()) measure_cpu(machine_, options.dtype);
}

std::string RunProfile::write(comm::Communicator& host, const std::string& device) const {
  const ProfileReport report = make_report(recorder_, machine_);
  if (report.steps == 0)  // the same on all ranks
    return "no profile: the run ended within the first " + std::to_string(kLeftOut) + " steps\n";
  const std::vector<std::string> ranks = comm::gather_texts(host, to_json(report, host.rank()));
  if (host.rank() == 0) write_file_atomically(file_, profile_file(device, ranks));
  return describe(report) +
         (machine_.host_is_device()
              ? ""
              : "each instruction was launched by itself: a run without --profile records "
                "steps and is faster\n") +
         "all of it: " + file_ + "\n";
}

}  // namespace strata::train
