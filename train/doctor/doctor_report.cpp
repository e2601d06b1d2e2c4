#include "train/doctor/doctor_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/json_writer.h"
#include "train/config/byte_size.h"
#include "train/engine/memory_report.h"

namespace strata::train {
namespace {

std::string size_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::string rate_text(double rate) {
  char text[48];
  std::snprintf(text, sizeof text, rate < 1e10 ? "%.2f GB/s" : "%.1f GB/s", rate / 1e9);
  return text;
}

std::string count_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::string limit_text(std::int64_t bytes) {
  return bytes == kUnlimitedMemory ? "unlimited" : size_text(bytes);
}

/// A page of "name   text" lines.
class Page {
 public:
  void line(const std::string& name, const std::string& text) {
    constexpr std::size_t kWidth = 14;
    text_ += name + std::string(kWidth > name.size() ? kWidth - name.size() : 1, ' ') + text + "\n";
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool quota_binds(const CoreFacts& cores) {
  return cores.quota > 0 && cores.quota < static_cast<double>(cores.allowed);
}

std::string cores_text(const CoreFacts& cores) {
  std::string text = std::to_string(cores.allowed) + " usable of " + std::to_string(cores.online) +
                     ": ranks share " + std::to_string(cores.allowed) + " threads";
  if (quota_binds(cores)) text += "; a control group grants the time of " + count_text(cores.quota);
  return text;
}

std::string nodes_text(const std::vector<NumaNode>& nodes) {
  if (nodes.size() < 2) return "1";
  std::string text = std::to_string(nodes.size()) + ": ranks stay near their memory; cores";
  for (const NumaNode& node : nodes)
    text += (&node == nodes.data() ? " " : "; ") + format_core_list(node.cores);
  return text;
}

std::string memory_text(const MemoryFacts& memory) {
  std::string text = (memory.available_bytes > 0 ? size_text(memory.available_bytes) : "unknown") +
                     " available of " + size_text(memory.total_bytes);
  if (memory.cgroup)
    text += "; a control group allows " + size_text(memory.cgroup->limit_bytes) + ", " +
            size_text(memory.cgroup->left_bytes) + " of it are left";
  return text;
}

std::string huge_pages_text(const std::string& policy) {
  if (policy.empty()) return "this kernel has no transparent ones";
  return policy + (policy == "never" ? ": arenas use small pages" : ": arenas use them");
}

std::string locked_text(const TransferFacts& transfers) {
  const std::string limit = limit_text(transfers.locked_limit_bytes);
  if (!transfers.why_no_uring.empty()) return limit + ": does not matter without io_uring";
  if (!transfers.registered) return limit + ": disk windows are not registered";
  if (transfers.locked_limit_bytes < transfers.tried_bytes)
    return limit + ", but it does not bind this user: disk windows are registered";
  if (transfers.locked_limit_bytes == kUnlimitedMemory)
    return limit + ": disk windows are registered";
  return limit + ": disk windows are registered while those of all ranks together stay below it";
}

std::string speed_text(const offload::ProbeResult& speed) {
  if (speed.mixed_rate == 0) return "too little free space to measure";
  return rate_text(speed.read_rate) + " read, " + rate_text(speed.write_rate) + " written, " +
         rate_text(speed.mixed_rate) + " both at once; chosen: requests of " +
         size_text(speed.settings.request_bytes) + ", " + std::to_string(speed.settings.depth) +
         " at a time";
}

void add_disks(const DoctorReport& report, Page& page) {
  if (report.disks.empty())
    page.line("disk", "not measured; name folders with --nvme-path DIR ...");
  for (const DiskFacts& disk : report.disks) {
    page.line("disk", disk.path + ": " +
                          (disk.file_system.empty() ? "unknown file system" : disk.file_system) +
                          ", " + size_text(disk.free_bytes) + " free, " +
                          (disk.direct ? "O_DIRECT" : "no O_DIRECT"));
    page.line("", speed_text(disk.speed));
  }
  if (report.striped) page.line("disks striped", speed_text(*report.striped));
}

void write_speed(JsonWriter& json, const offload::ProbeResult& speed) {
  json.member("read_rate", speed.read_rate)
      .member("write_rate", speed.write_rate)
      .member("mixed_rate", speed.mixed_rate)
      .member("request_bytes", speed.settings.request_bytes)
      .member("depth", speed.settings.depth);
}

void write_machine(JsonWriter& json, const MachineFacts& machine) {
  json.member("processor", machine.processor).member("instructions", machine.instructions);
  json.key("cores").begin_object();
  json.member("online", machine.cores.online).member("allowed", machine.cores.allowed);
  json.key("quota");
  machine.cores.quota > 0 ? json.value(machine.cores.quota) : json.null();
  json.end_object();
  json.key("memory").begin_object();
  json.member("total_bytes", machine.memory.total_bytes)
      .member("available_bytes", machine.memory.available_bytes);
  json.key("cgroup");
  if (machine.memory.cgroup)
    json.begin_object()
        .member("limit_bytes", machine.memory.cgroup->limit_bytes)
        .member("left_bytes", machine.memory.cgroup->left_bytes)
        .end_object();
  else
    json.null();
  json.end_object();
  json.member("numa_nodes", std::max<std::size_t>(1, machine.numa_nodes.size()))
      .member("huge_pages", machine.huge_pages);
  json.key("io_uring").begin_object();
  json.member("allowed", machine.transfers.why_no_uring.empty())
      .member("why_not", machine.transfers.why_no_uring)
      .member("memory_registered", machine.transfers.registered);
  json.key("locked_memory_limit_bytes");
  machine.transfers.locked_limit_bytes == kUnlimitedMemory
      ? json.null()
      : json.value(machine.transfers.locked_limit_bytes);
  json.end_object();
}

void write_devices(JsonWriter& json, const DoctorReport& report) {
  json.key("devices").begin_array();
  for (const DeviceFacts& device : report.devices)
    json.begin_object()
        .member("description", device.description)
        .member("total_bytes", device.memory.total_bytes)
        .member("free_bytes", device.memory.free_bytes)
        .member("to_device_rate", device.links.to_device)
        .member("to_host_rate", device.links.to_host)
        .member("both_ways_rate", device.links.both_ways)
        .member("problem", device.problem)
        .end_object();
  json.end_array().member("why_no_device", report.why_no_device);
}

void write_disks(JsonWriter& json, const DoctorReport& report) {
  json.key("disks").begin_array();
  for (const DiskFacts& disk : report.disks) {
    json.begin_object()
        .member("path", disk.path)
        .member("file_system", disk.file_system)
        .member("free_bytes", disk.free_bytes)
        .member("direct", disk.direct);
    write_speed(json, disk.speed);
    json.key("notes").begin_array();
    for (const std::string& note : disk.notes) json.value(note);
    json.end_array().end_object();
  }
  json.end_array().key("striped");
  if (report.striped) {
    json.begin_object();
    write_speed(json, *report.striped);
    json.end_object();
  } else {
    json.null();
  }
}

}  // namespace

std::vector<std::string> advice(const DoctorReport& report) {
  const MachineFacts& machine = report.machine;
  std::vector<std::string> lines;
  if (quota_binds(machine.cores))
    lines.push_back("cores: give --threads " +
                    count_text(std::max(1.0, std::floor(machine.cores.quota))) +
                    " divided by the ranks, or raise the control group's quota");
  if (machine.huge_pages == "never")
    lines.push_back("huge pages: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  const TransferFacts& transfers = machine.transfers;
  if (!transfers.why_no_uring.empty())
    lines.push_back("io_uring: " + transfers.why_no_uring +
                    ", so disk transfers use threads; sysctl kernel.io_uring_disabled=0, or a "
                    "container policy that allows it");
  else if (!transfers.registered)
    lines.push_back("memlock " + limit_text(transfers.locked_limit_bytes) +
                    ": disk windows are not registered; ulimit -l unlimited, or memlock in "
                    "/etc/security/limits.conf, to change");
  for (const DeviceFacts& device : report.devices)
    if (!device.problem.empty()) lines.push_back("GPU: " + device.problem);
  for (const DiskFacts& disk : report.disks)
    for (const std::string& note : disk.notes)
      // That io_uring is missing has been said.
      if (transfers.why_no_uring.empty() || !note.starts_with(transfers.why_no_uring))
        lines.push_back(note);
  return lines;
}

std::string to_text(const DoctorReport& report) {
  const MachineFacts& machine = report.machine;
  Page page;
  page.line("processor", machine.processor);
  page.line("instructions", machine.instructions);
  page.line("cores", cores_text(machine.cores));
  page.line("memory", memory_text(machine.memory));
  page.line("", rate_text(report.host_copy_rate) + " copied, read and written counted");
  page.line("NUMA nodes", nodes_text(machine.numa_nodes));
  page.line("huge pages", huge_pages_text(machine.huge_pages));
  page.line("io_uring", machine.transfers.why_no_uring.empty()
                            ? "allowed: it does the disk transfers"
                            : machine.transfers.why_no_uring + ": threads do the disk transfers");
  page.line("memlock", locked_text(machine.transfers));
  if (report.devices.empty()) page.line("GPU", report.why_no_device + ": steps run on the CPU");
  for (const DeviceFacts& device : report.devices) {
    if (!device.problem.empty()) {
      page.line("GPU", device.description + ": " + device.problem);
      continue;
    }
    page.line("GPU", device.description + ", " + size_text(device.memory.free_bytes) + " free of " +
                         size_text(device.memory.total_bytes));
    page.line("", rate_text(device.links.to_device) + " to the device, " +
                      rate_text(device.links.to_host) + " back, " +
                      rate_text(device.links.both_ways) + " both at once, pinned");
  }
  add_disks(report, page);
  std::string text = page.text();
  const std::vector<std::string> lines = advice(report);
  text += lines.empty() ? "\nnothing to change\n" : "\nto change\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string to_json(const DoctorReport& report) {
  JsonWriter json;
  json.begin_object();
  write_machine(json, report.machine);
  json.member("host_copy_rate", report.host_copy_rate);
  write_devices(json, report);
  write_disks(json, report);
  json.key("advice").begin_array();
  for (const std::string& line : advice(report)) json.value(line);
  json.end_array().end_object();
  return json.finish() + "\n";
}

}  // namespace strata::train
