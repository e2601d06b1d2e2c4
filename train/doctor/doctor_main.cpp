// `doctor`: what this machine can do, measured, and what Strata would choose on it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/program_main.h"
#include "kernels/cuda/open_device.h"
#include "train/doctor/doctor_report.h"

namespace strata::train {
namespace {

/// Larger than caches, where there is that much to spare.
constexpr std::int64_t kHostBytes = std::int64_t{512} << 20;
constexpr std::int64_t kLeastHostBytes = std::int64_t{1} << 20;
constexpr std::int64_t kDeviceBytes = std::int64_t{256} << 20;

DeviceFacts look_at_device(int ordinal) {
  DeviceFacts facts;
  facts.description = "number " + std::to_string(ordinal);
  try {
    const auto device = cuda::open_device(ordinal);
    facts.description = device->description();
    facts.memory = device->memory();
    facts.links = measure_links(*device, kDeviceBytes);
  } catch (const Error& error) {
    facts.problem = error.what();  // a finding, as others are
  }
  return facts;
}

DoctorReport look(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) require_folder(folder);  // before anything takes time
  DoctorReport report;
  report.machine = find_machine_facts();
  const std::int64_t available = report.machine.memory.available_bytes;
  const std::int64_t bytes =
      available > 0 ? std::clamp(available / 8, kLeastHostBytes, kHostBytes) : kHostBytes;
  report.host_copy_rate = host_copy_rate(report.machine.cores.allowed, bytes);
  const cuda::DeviceCount count = cuda::count_devices();
  report.why_no_device = count.why_none;
  for (int i = 0; i < count.devices; ++i) report.devices.push_back(look_at_device(i));
  for (const std::string& folder : folders) report.disks.push_back(measure_disk(folder));
  if (folders.size() > 1) report.striped = measure_striped(folders);
  return report;
}

int run(int argc, char** argv, const RankContext& context) {
  std::vector<std::string> folders;
  bool json = false;
  CLI::App app(
      "Prints what this machine can do, measured, and what Strata would choose on it: cores,\n"
      "memory, locked memory, io_uring, GPUs and, for each folder named, the disk. Some seconds.");
  app.add_option("--nvme-path,--nvme_path", folders,
                 "folders for offloaded tensors, one per drive; each is measured")
      ->delimiter(',');
  app.add_flag("--json", json, "for machines: amounts in bytes, rates in bytes per second");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  if (context.world > 1)
    throw InvalidArgument(
        "doctor looks at one machine and disturbs what it measures when several "
        "run; start it once, without -np");
  const DoctorReport report = look(folders);
  std::fputs((json ? to_json(report) : to_text(report)).c_str(), stdout);
  return static_cast<int>(ExitCode::done);
}

}  // namespace
}  // namespace strata::train

int main(int argc, char** argv) {
  return strata::program_main("doctor", [&](const strata::RankContext& context) {
    return strata::train::run(argc, argv, context);
  });
}
