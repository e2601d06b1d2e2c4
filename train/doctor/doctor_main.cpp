// Runs `doctor`: measures what this machine can do, and says what Strata would choose on it; with
// --hosts, whether the hosts of a run can work together.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/nearest_name.h"
#include "core/own_files.h"
#include "core/program_main.h"
#include "core/standard_output.h"
#include "core/system_call.h"
#include "core/version.h"
#include "kernels/cuda/open_device.h"
#include "machine/copy_speed.h"
#include "machine/hardware_file.h"
#include "machine/host_memory.h"
#include "machine/measure_cpu.h"
#include "machine/this_host.h"
#include "train/doctor/doctor_report.h"
#include "train/doctor/hosts_check.h"
#include "train/doctor/hosts_report.h"

namespace strata::train {
namespace {

constexpr std::int64_t kDeviceBytes = std::int64_t{256} << 20;

DeviceFacts look_at_device(int ordinal) {
  DeviceFacts facts;
  facts.description = "number " + std::to_string(ordinal);
  try {
    const auto device = cuda::open_device(ordinal);
    facts.description = device->description();
    facts.name = device->name();
    facts.capabilities = device->capabilities();
    facts.memory = device->memory();
    facts.link = machine::measure_links(*device, kDeviceBytes);
  } catch (const Error& error) {
    facts.problem = error.what();  // reported like other findings
  }
  return facts;
}

DoctorReport look(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) require_folder(folder);  // before anything takes time
  DoctorReport report;
  report.host = machine::look_at_this_host();
  report.state = look_at_host_state();
  (void)machine::measure_cpu(report.host, DType::bf16, machine::memory_to_measure());
  report.host.memory.bytes_per_second = report.host.device.bytes_per_second;
  const cuda::DeviceCount count = cuda::count_devices();
  report.why_no_device = count.why_none;
  for (int i = 0; i < count.devices; ++i) report.devices.push_back(look_at_device(i));
  for (const std::string& folder : folders) report.disks.push_back(measure_disk(folder));
  if (folders.size() > 1) report.striped = measure_striped(folders);
  return report;
}

/// Returns what is known of this host besides its network.
HostFacts look_at_host(const RankContext& context) {
  const machine::Machine host = machine::look_at_this_host();
  HostFacts facts;
  facts.name = context.host;
  facts.programs = own_directory();
  for (const auto& [file, hash] :
       hashes_of_installed({"doctor", "generate", "inspect", "mlaunch", "plan", "train"}))
    facts.build[file] = fmt::format("{:016x}", hash);
  facts.processor = host.processor.name;
  facts.cores = static_cast<int>(host.processor.cores.whole());
  facts.available_bytes = machine::available_host_bytes();
  rlimit locked{};
  checked(::getrlimit(RLIMIT_MEMLOCK, &locked), "reading the limit of locked memory");
  if (locked.rlim_cur != RLIM_INFINITY)
    facts.locked_bytes = static_cast<std::int64_t>(locked.rlim_cur);
  struct statvfs shared {};
  if (::statvfs("/dev/shm", &shared) == 0)
    facts.shared_memory_bytes = static_cast<std::int64_t>(shared.f_bavail * shared.f_frsize);
  for (int i = 0; i < cuda::count_devices().devices; ++i) {
    const DeviceFacts device = look_at_device(i);
    facts.gpus.push_back(device.problem.empty() ? device.description : device.problem);
  }
  return facts;
}

/// Prints what was found on all hosts of a run, on rank 0.
int run_on_hosts(const RankContext& context, const std::string& folder, StandardOutput& output) {
  const HostsReport report = check_hosts(context, look_at_host(context), folder);
  if (context.rank != 0) return static_cast<int>(ExitCode::done);
  output.print(to_text(report));
  const bool is_bad = std::ranges::any_of(
      judge(report), [](const Finding& finding) { return finding.level == Finding::Level::bad; });
  return static_cast<int>(is_bad ? ExitCode::host : ExitCode::done);
}

/// Names the first unknown flag of the surplus words, else the first word.
std::string said_of_unknown(const std::vector<std::string>& words) {
  const auto flag =
      std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  if (flag == words.end()) return "unexpected '" + words.front() + "'; see doctor --help";
  return "unknown flag " + *flag +
         suggestion(flag->substr(0, flag->find('=')),
                    {"--nvme-path", "--json", "--write-hardware", "--hosts", "--output"}) +
         " (doctor --help lists the flags)";
}

int run(int argc, char** argv, const RankContext& context, StandardOutput& output) {
  std::vector<std::string> folders;
  bool json = false;
  std::string hardware;
  bool hosts = false;
  std::string shared_folder;
  CLI::App app(
      "Prints what this machine can do, measured, and what Strata would choose on it: cores,\n"
      "memory, locked memory, io_uring, GPUs and, for each folder named, the disk. Some seconds.");
  app.add_option("--nvme-path,--nvme_path", folders,
                 "folders for offloaded tensors, one per drive; each is measured")
      ->delimiter(',');
  app.add_flag("--json", json, "for machines: amounts in bytes, rates in bytes per second");
  app.add_option("--write-hardware,--write_hardware", hardware,
                 "also write what a plan must know of this machine to this file\n"
                 "(docs/formats/hardware.md)");
  auto* of_hosts = app.add_flag("--hosts", hosts,
                                "look at the hosts of a run, which start as the run will:\n"
                                "mlaunch -H a,b doctor --hosts; ends with 69 if something is bad");
  app.add_option("--output", shared_folder, "with --hosts: also try this folder, which they share")
      ->needs(of_hosts);
  for (const char* name : {"--nvme-path", "--json", "--write-hardware"})
    of_hosts->excludes(app.get_option(name));
  app.set_version_flag("--version", version_text("doctor"), "print the version of Strata");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    throw InvalidArgument(said_of_unknown(app.remaining()));
  } catch (const CLI::CallForVersion& version) {
    output.print(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  if (hosts) return run_on_hosts(context, shared_folder, output);
  if (context.world > 1)
    throw InvalidArgument(
        "doctor looks at one machine and disturbs what it measures when several "
        "run; start it once, without -np");
  const DoctorReport report = look(folders);
  if (!hardware.empty()) write_file_atomically(hardware, to_json(machine_of(report)));
  if (!hardware.empty() && !json) output.print("wrote " + hardware + "\n\n");
  output.print(json ? to_json(report) : to_text(report));
  return static_cast<int>(ExitCode::done);
}

}  // namespace
}  // namespace strata::train

int main(int argc, char** argv) {
  return strata::program_main("doctor", [&](const auto& context, auto& output) {
    return strata::train::run(argc, argv, context, output);
  });
}
