#include "launcher/report/hang_report.h"

#include "launcher/report/failure_report.h"

namespace strata::launcher {
namespace {

constexpr std::size_t kMostStackLines = 24;

std::string advice_for(const Hang& hang, const ProcessState& process,
                       const std::vector<ThreadFacts>& threads) {
  const bool waits_for_device =
      !threads.empty() && what_holds(threads).find("device") != std::string::npos;
  switch (hang.kind) {
    case Hang::Kind::held:
      if (process.frozen)
        return "a job scheduler or container engine froze it; where it does not end when it is "
               "killed, thaw it (scontrol resume, docker unpause); mlaunch --hang-timeout 0 waits "
               "for ever";
      return "somebody stopped it (kill -STOP, a debugger, a job scheduler); mlaunch "
             "--hang-timeout 0 waits for ever";
    case Hang::Kind::different:
      return "the ranks do not run the same Programs; this is a bug, report it with these lines";
    case Hang::Kind::in_it:
      return "look at the network, and at the GPUs (nvidia-smi, dmesg)";
    default:
      return waits_for_device
                 ? "look at the disk or file system that it waits for (df -h, dmesg)"
                 : "if it only needs longer, give more: mlaunch --hang-timeout SECONDS";
  }
}

std::string first_lines(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < count && end != std::string::npos; ++line)
    end = text.find('\n', end + (line > 0 ? 1 : 0));
  return text.substr(0, end);
}

}  // namespace

std::string hang_report(const Hang& hang, const ProcessState& process,
                        const std::vector<ThreadFacts>& threads, const std::string& stacks) {
  std::string report = "mlaunch: " + hang.describe() + "\n";
  if (!threads.empty()) {
    add_field(report, "held", process.frozen ? "in a frozen control group" : what_holds(threads));
    add_field(report, "threads", describe_threads(threads));
  }
  add_field(report, "stack", first_lines(stacks, kMostStackLines));
  add_field(report, "advice", advice_for(hang, process, threads));
  report.pop_back();
  return report;
}

}  // namespace strata::launcher
