#include "train/doctor/hosts_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/format_bytes.h"
#include "core/text_table.h"

namespace strata::train {
namespace {

using Level = Finding::Level;

constexpr double kClocksAgree = 1;                              ///< seconds
constexpr std::int64_t kSharedMemory = std::int64_t{1} << 30;   ///< that NCCL may need
constexpr std::int64_t kLockedMemory = std::int64_t{64} << 20;  ///< of a few disk windows
constexpr double kSlowRoundTrip = 0.002;                        ///< seconds; Ethernet has 0.05 ms

/// Collects findings: those of hosts, or that there is none.
class Findings {
 public:
  void add(Level level, const std::string& what, const std::string& text) {
    all_.push_back({level, what, text});
  }
  /// Adds that all is well with something, unless it has been found to be otherwise.
  void conclude(const std::string& what, const std::string& text) {
    if (std::ranges::find(all_, what, &Finding::what) == all_.end()) add(Level::ok, what, text);
  }
  std::vector<Finding> take() { return std::move(all_); }

 private:
  std::vector<Finding> all_;
};

std::string bandwidth_text(double rate) { return fmt::format("{:.2f} GB/s", rate / 1e9); }
std::string trip_text(double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); }

/// Says for which hosts a fact is another one than for the first; "": for none.
template <typename Fact>
std::string others_than_first(const std::vector<HostFacts>& hosts, const Fact& fact) {
  std::string text;
  for (const HostFacts& host : hosts)
    if (fact(host) != fact(hosts.front()))
      text += fmt::format("{}{} has {}", text.empty() ? "" : "; ", host.name, fact(host));
  return text.empty() ? ""
                      : fmt::format("{} has {}; {}", hosts.front().name, fact(hosts.front()), text);
}

std::string gpus_of(const HostFacts& host) {
  if (host.gpus.empty()) return "none";
  std::map<std::string, int> counts;
  for (const std::string& gpu : host.gpus) ++counts[gpu];
  std::string text;
  for (const auto& [gpu, count] : counts)
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, gpu);
  return text;
}

/// Says what of a build is missing or another one than on the first host: "has another train, has
/// no plan"; "": nothing is.
std::string difference_of_builds(const HostFacts& first, const HostFacts& host) {
  std::string text;
  const auto add = [&](const char* how, const std::string& file) {
    text += fmt::format("{}has {} {}", text.empty() ? "" : ", ", how, file);
  };
  for (const auto& [file, hash] : first.build) {
    const auto own = host.build.find(file);
    if (own == host.build.end())
      add("no", file);
    else if (own->second != hash)
      add("another", file);
  }
  for (const auto& [file, hash] : host.build)
    if (!first.build.contains(file)) add("also", file);
  return text;
}

void judge_programs(const HostsReport& report, Findings& findings) {
  const auto& hosts = report.hosts;
  for (const HostFacts& host : hosts)
    if (const std::string difference = difference_of_builds(hosts.front(), host);
        !difference.empty())
      findings.add(
          Level::bad, "strata",
          fmt::format("{} (in {}), compared with {} (in {}), {}; install the same build", host.name,
                      host.programs, hosts.front().name, hosts.front().programs, difference));
  if (const auto paths =
          others_than_first(hosts, [](const HostFacts& host) { return host.programs; });
      !paths.empty())
    findings.add(Level::note, "strata", paths + "; with -H it must be one path on all hosts");
  findings.conclude("strata",
                    "the same programs and modules in " + hosts.front().programs + " on all hosts");
}

void judge_machines(const HostsReport& report, Findings& findings) {
  const auto& hosts = report.hosts;
  if (const auto unlike =
          others_than_first(hosts, [](const HostFacts& host) { return host.processor; });
      !unlike.empty())
    findings.add(Level::note, "processors",
                 unlike + "; the bits of a run then depend on which of them computes what");
  findings.conclude("processors", hosts.front().processor + " on all hosts");
  if (const auto unlike = others_than_first(hosts, gpus_of); !unlike.empty())
    findings.add(Level::note, "GPUs",
                 unlike + "; unlike GPUs or drivers go at the pace of the slowest");
  findings.conclude("GPUs", hosts.front().gpus.empty() ? "no host has one"
                                                       : gpus_of(hosts.front()) + " on each host");
  for (const HostFacts& host : hosts) {
    if (host.locked_bytes >= 0 && host.locked_bytes < kLockedMemory)
      findings.add(Level::note, "memlock",
                   fmt::format("{} allows {} of locked memory; for --nvme-path and fast copies to "
                               "GPUs: ulimit -l unlimited, or LimitMEMLOCK of what starts mlaunch",
                               host.name, format_bytes(host.locked_bytes)));
    if (host.gpus.size() > 1 && host.shared_memory_bytes < kSharedMemory)
      findings.add(
          Level::note, "/dev/shm",
          fmt::format("{} has {} free, and NCCL may need 1 GiB between GPUs; in a container: "
                      "--shm-size 1g, or a memory-backed emptyDir",
                      host.name,
                      format_bytes(std::max<std::int64_t>(host.shared_memory_bytes, 0))));
  }
  findings.conclude("memlock", "enough locked memory is allowed on all hosts");
  findings.conclude("/dev/shm", "enough for the GPUs of all hosts");
}

void judge_ports(const HostsReport& report, Findings& findings) {
  for (const HostFacts& host : report.hosts)
    if (!host.no_port.empty())
      findings.add(Level::bad, "ports",
                   fmt::format("{}: {}; name another network: mlaunch --interface NAME", host.name,
                               host.no_port));
  for (std::size_t from = 0; from < report.hosts.size(); ++from)
    for (const HostLinks::Unreached& one : report.links[from].unreached) {
      const HostFacts& to = report.hosts[static_cast<std::size_t>(one.host)];
      findings.add(
          Level::bad, "ports",
          fmt::format("{} does not reach {} at {}, port {}: {}; open TCP ports from 1024 on "
                      "between the hosts, or name a network that is open: mlaunch --interface NAME",
                      report.hosts[from].name, to.name, to.address, to.port, one.why));
    }
  findings.conclude("ports", "all hosts reach one another at random ports");
}

void judge_speed(const HostsReport& report, Findings& findings) {
  std::vector<double> rates;
  for (const HostLinks& links : report.links)
    for (const HostLinks::Stream& stream : links.streams) rates.push_back(stream.bytes_per_second);
  std::ranges::sort(rates);
  const double usual = rates.empty() ? 0 : rates[rates.size() / 2];
  double longest = 0;
  for (std::size_t from = 0; from < report.hosts.size(); ++from) {
    const HostLinks& links = report.links[from];
    const auto name = [&](int host) { return report.hosts[static_cast<std::size_t>(host)].name; };
    longest = std::max(longest, links.round_trip_seconds);
    if (links.round_trip_seconds > kSlowRoundTrip)
      findings.add(
          Level::note, "network",
          fmt::format("from {} to {} and back takes {}; are they on one network, or is one "
                      "of them busy?",
                      report.hosts[from].name, name(links.farthest),
                      trip_text(links.round_trip_seconds)));
    for (const HostLinks::Stream& stream : links.streams)
      if (stream.bytes_per_second < usual / 2)
        findings.add(Level::note, "network",
                     fmt::format("{} sends {} to {}, where {} is usual; look at its cable, port or "
                                 "load (ethtool)",
                                 report.hosts[from].name, bandwidth_text(stream.bytes_per_second),
                                 name(stream.host), bandwidth_text(usual)));
  }
  if (rates.empty())
    findings.add(Level::note, "network", "its speed is not known, as no host reaches another");
  else
    findings.conclude(
        "network",
        fmt::format("there and back in {} at most; {} to {} from host to host", trip_text(longest),
                    bandwidth_text(rates.front()), bandwidth_text(rates.back())));
}

void judge_folder(const HostsReport& report, Findings& findings) {
  if (report.output.empty())
    return findings.add(Level::note, "output", "not tried; name the run's folder: --output DIR");
  for (std::size_t host = 0; host < report.hosts.size(); ++host) {
    const HostLinks& links = report.links[host];
    if (!links.no_file.empty())
      findings.add(
          Level::bad, "output",
          fmt::format("{} on {}: {}; a checkpoint is one folder, so all hosts need the same, "
                      "on NFS or another shared file system",
                      report.output, report.hosts[host].name, links.no_file));
    else if (!links.no_lock.empty())
      findings.add(Level::bad, "output",
                   fmt::format("{} on {}: {}; mount it with locks (NFS: without nolock and "
                               "local_lock)",
                               report.output, report.hosts[host].name, links.no_lock));
  }
  findings.conclude("output", report.output + " is one folder on all hosts, and locks hold");
}

void judge_clocks(const HostsReport& report, Findings& findings) {
  for (std::size_t host = 1; host < report.hosts.size(); ++host)
    if (const double ahead = report.links[host].clock_ahead_seconds; std::abs(ahead) > kClocksAgree)
      findings.add(Level::note, "clocks",
                   fmt::format("that of {} is {:.1f} s {} {}'s; a run does not mind, times in logs "
                               "do: run chrony or ntpd",
                               report.hosts[host].name, std::abs(ahead),
                               ahead > 0 ? "before" : "behind", report.hosts.front().name));
  findings.conclude("clocks", "they agree to a second");
}

}  // namespace

std::vector<Finding> judge(const HostsReport& report) {
  Findings findings;
  judge_programs(report, findings);
  judge_ports(report, findings);
  judge_speed(report, findings);
  judge_folder(report, findings);
  judge_clocks(report, findings);
  judge_machines(report, findings);
  return findings.take();
}

std::string to_text(const HostsReport& report) {
  TextTable hosts({{"host"},
                   {"address"},
                   {"cores", TextTable::Align::right},
                   {"free memory", TextTable::Align::right},
                   {"memlock", TextTable::Align::right},
                   {"/dev/shm", TextTable::Align::right},
                   {"GPUs"}});
  const auto bytes = [](std::int64_t amount, const char* none) {
    return amount < 0 ? std::string(none) : format_bytes(amount);
  };
  for (const HostFacts& host : report.hosts)
    hosts.add({host.name,
               host.interface.empty() ? host.address
                                      : fmt::format("{} ({})", host.address, host.interface),
               std::to_string(host.cores), bytes(host.available_bytes, "unknown"),
               bytes(host.locked_bytes, "unlimited"), bytes(host.shared_memory_bytes, "none"),
               gpus_of(host)});
  constexpr const char* kLevels[] = {"ok", "note", "bad"};
  std::string text = hosts.text() + "\n";
  for (const Finding& finding : judge(report))
    text += fmt::format("{:<6}{:<12}{}\n", kLevels[static_cast<int>(finding.level)], finding.what,
                        finding.text);
  return text;
}

}  // namespace strata::train
