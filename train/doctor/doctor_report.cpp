#include "train/doctor/doctor_report.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/byte_size.h"
#include "core/format_bytes.h"
#include "core/json_writer.h"
#include "machine/this_host.h"

namespace strata::train {
namespace {

std::string rate_text(double rate) {
  return fmt::format("{:.{}f} GB/s", rate / 1e9, rate < 1e10 ? 2 : 1);
}

std::string count_text(double number) { return fmt::format("{:g}", number); }

std::string limit_text(std::int64_t bytes) {
  return bytes == kUnlimitedMemory ? "unlimited" : format_bytes(bytes);
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

bool quota_binds(const DoctorReport& report) {
  return report.state.cpu_quota > 0 && report.state.cpu_quota < report.host.processor.cores;
}

std::string cores_text(const DoctorReport& report) {
  const std::string usable = count_text(report.host.processor.cores);
  std::string text = fmt::format("{} usable of {}: ranks share {} threads", usable,
                                 report.state.online_cores, usable);
  if (quota_binds(report))
    text += "; a control group grants the time of " + count_text(report.state.cpu_quota);
  return text;
}

std::string products_text(const machine::Device& cpu) {
  const auto rate = [](double flops) { return count_text(std::round(flops / 1e9)) + " GFLOP/s"; };
  return rate(cpu.fp32_flops) + " in fp32, " + rate(cpu.bf16_flops) + " in bf16";
}

std::string nodes_text(const std::vector<machine::NumaNode>& nodes) {
  if (nodes.size() < 2) return "1";
  std::string text = fmt::format("{}: ranks stay near their memory; cores", nodes.size());
  for (const machine::NumaNode& node : nodes)
    text += (&node == nodes.data() ? " " : "; ") + machine::format_core_list(node.cores);
  return text;
}

std::string memory_text(const DoctorReport& report) {
  const HostState& state = report.state;
  std::string text = (state.available_bytes > 0 ? format_bytes(state.available_bytes) : "unknown") +
                     " available of " + format_bytes(report.host.memory.bytes.whole());
  if (state.cgroup)
    text += "; a control group allows " + format_bytes(state.cgroup->limit_bytes) + ", " +
            format_bytes(state.cgroup->left_bytes) + " of it are left";
  return text;
}

std::string huge_pages_text(const std::string& policy) {
  if (policy.empty()) return "this kernel has no transparent ones";
  return policy + (policy == "never" ? ": arenas use small pages" : ": arenas use them");
}

/// The limit on locked memory; kUnlimitedMemory: none.
std::int64_t locked_limit_bytes(const DoctorReport& report) {
  const machine::Figure limit = report.host.memory.locked_bytes;
  return limit.known() ? limit.whole() : kUnlimitedMemory;
}

std::string locked_text(const DoctorReport& report) {
  const TransferFacts& transfers = report.state.transfers;
  const std::int64_t limit_bytes = locked_limit_bytes(report);
  const std::string limit = limit_text(limit_bytes);
  if (!transfers.why_no_uring.empty()) return limit + ": does not matter without io_uring";
  if (!transfers.registered) return limit + ": disk windows are not registered";
  if (limit_bytes < transfers.tried_bytes)
    return limit + ", but it does not bind this user: disk windows are registered";
  if (limit_bytes == kUnlimitedMemory) return limit + ": disk windows are registered";
  return limit + ": disk windows are registered while those of all ranks together stay below it";
}

std::string speed_text(const machine::Disk& speed) {
  if (!speed.mixed_rate.known()) return "too little free space to measure";
  return fmt::format("{} read, {} written, {} both at once; chosen: requests of {}, {} at a time",
                     rate_text(speed.read_rate), rate_text(speed.write_rate),
                     rate_text(speed.mixed_rate), format_bytes(speed.request_bytes), speed.depth);
}

void add_disks(const DoctorReport& report, Page& page) {
  if (report.disks.empty())
    page.line("disk", "not measured; name folders with --nvme-path DIR ...");
  for (const DiskFacts& disk : report.disks) {
    page.line("disk", disk.path + ": " +
                          (disk.file_system.empty() ? "unknown file system" : disk.file_system) +
                          ", " + format_bytes(disk.free_bytes) + " free, " +
                          (disk.direct ? "O_DIRECT" : "no O_DIRECT"));
    page.line("", speed_text(disk.speed));
  }
  if (report.striped) page.line("disks striped", speed_text(*report.striped));
}

void write_speed(JsonWriter& json, const machine::Disk& speed) {
  json.member("read_rate", speed.read_rate.value)
      .member("write_rate", speed.write_rate.value)
      .member("mixed_rate", speed.mixed_rate.value)
      .member("request_bytes", speed.request_bytes)
      .member("depth", speed.depth);
}

void write_host(JsonWriter& json, const DoctorReport& report) {
  const machine::Processor& processor = report.host.processor;
  const HostState& state = report.state;
  json.member("processor", processor.name).member("instructions", state.instructions);
  json.key("cores").begin_object();
  json.member("online", state.online_cores).member("allowed", processor.cores.whole());
  json.key("quota");
  state.cpu_quota > 0 ? json.value(state.cpu_quota) : json.null();
  json.end_object();
  json.member("fp32_flops", report.host.device.fp32_flops.value)
      .member("bf16_flops", report.host.device.bf16_flops.value);
  json.key("memory").begin_object();
  json.member("total_bytes", report.host.memory.bytes.whole())
      .member("available_bytes", state.available_bytes);
  json.key("cgroup");
  if (state.cgroup)
    json.begin_object()
        .member("limit_bytes", state.cgroup->limit_bytes)
        .member("left_bytes", state.cgroup->left_bytes)
        .end_object();
  else
    json.null();
  json.end_object();
  json.member("numa_nodes", std::max<std::size_t>(1, processor.numa.size()))
      .member("huge_pages", state.huge_pages);
  json.key("io_uring").begin_object();
  json.member("allowed", state.transfers.why_no_uring.empty())
      .member("why_not", state.transfers.why_no_uring)
      .member("memory_registered", state.transfers.registered);
  json.key("locked_memory_limit_bytes");
  const std::int64_t limit_bytes = locked_limit_bytes(report);
  limit_bytes == kUnlimitedMemory ? json.null() : json.value(limit_bytes);
  json.end_object();
}

void write_devices(JsonWriter& json, const DoctorReport& report) {
  json.key("devices").begin_array();
  for (const DeviceFacts& device : report.devices)
    json.begin_object()
        .member("description", device.description)
        .member("total_bytes", device.memory.total_bytes)
        .member("free_bytes", device.memory.free_bytes)
        .member("to_device_rate", device.link.to_device.value)
        .member("to_host_rate", device.link.to_host.value)
        .member("both_ways_rate", device.link.both_ways.value)
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

machine::Machine machine_of(const DoctorReport& report) {
  machine::Machine machine = report.host;
  int usable = 0;
  for (const DeviceFacts& device : report.devices) {
    if (!device.problem.empty() || usable++ > 0) continue;
    machine =
        machine::placed_on(machine::gpu_machine(device.name, device.capabilities), report.host);
    machine.memory.bytes_per_second = report.host.memory.bytes_per_second;
    const auto total = static_cast<double>(device.memory.total_bytes);
    machine.device.memory_bytes = machine::measured(total);
    machine.device.reserved_bytes =
        machine::measured(total - static_cast<double>(device.memory.free_bytes));
    machine.link = device.link;
  }
  machine.devices = std::max(1, usable);
  machine.hosts = 1;
  machine.network_rate = {};
  machine.name.clear();
  machine.description = report.host.processor.name;
  if (usable > 0)
    machine.description += fmt::format(", {} x {}", usable, machine.device.names.front());
  if (report.disks.empty()) return machine;
  const machine::Disk speed = report.striped.value_or(report.disks.front().speed);
  if (speed.mixed_rate.known()) machine.disk = speed;
  double room = 0;
  std::set<std::string> counted;  // folders of one file system share its room
  for (const DiskFacts& disk : report.disks)
    if (disk.file_system.empty() || counted.insert(disk.file_system).second)
      room += static_cast<double>(disk.free_bytes);
  machine.disk.bytes = machine::measured(room);
  return machine;
}

std::vector<std::string> advice(const DoctorReport& report) {
  const HostState& state = report.state;
  std::vector<std::string> lines;
  if (quota_binds(report))
    lines.push_back("cores: give --threads " +
                    count_text(std::max(1.0, std::floor(state.cpu_quota))) +
                    " divided by the ranks, or raise the control group's quota");
  if (state.huge_pages == "never")
    lines.push_back("huge pages: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  const TransferFacts& transfers = state.transfers;
  if (!transfers.why_no_uring.empty())
    lines.push_back("io_uring: " + transfers.why_no_uring +
                    ", so disk transfers use threads; sysctl kernel.io_uring_disabled=0, or a "
                    "container policy that allows it");
  else if (!transfers.registered)
    lines.push_back("memlock " + limit_text(locked_limit_bytes(report)) +
                    ": disk windows are not registered; ulimit -l unlimited, or memlock in "
                    "/etc/security/limits.conf, to change");
  for (const DeviceFacts& device : report.devices)
    if (!device.problem.empty()) lines.push_back("GPU: " + device.problem);
  for (const DiskFacts& disk : report.disks)
    for (const std::string& note : disk.notes)
      // A missing io_uring was reported above.
      if (transfers.why_no_uring.empty() || !note.starts_with(transfers.why_no_uring))
        lines.push_back(note);
  return lines;
}

std::string to_text(const DoctorReport& report) {
  const HostState& state = report.state;
  Page page;
  page.line("processor", report.host.processor.name);
  page.line("instructions", state.instructions);
  page.line("cores", cores_text(report));
  page.line("products", products_text(report.host.device));
  page.line("memory", memory_text(report));
  page.line("",
            rate_text(report.host.device.bytes_per_second) + " copied, read and written counted");
  page.line("NUMA nodes", nodes_text(report.host.processor.numa));
  page.line("huge pages", huge_pages_text(state.huge_pages));
  page.line("io_uring", state.transfers.why_no_uring.empty()
                            ? "allowed: it does the disk transfers"
                            : state.transfers.why_no_uring + ": threads do the disk transfers");
  page.line("memlock", locked_text(report));
  if (report.devices.empty()) page.line("GPU", report.why_no_device + ": steps run on the CPU");
  for (const DeviceFacts& device : report.devices) {
    if (!device.problem.empty()) {
      page.line("GPU", device.description + ": " + device.problem);
      continue;
    }
    page.line("GPU", device.description + ", " + format_bytes(device.memory.free_bytes) +
                         " free of " + format_bytes(device.memory.total_bytes));
    page.line("", rate_text(device.link.to_device) + " to the device, " +
                      rate_text(device.link.to_host) + " back, " +
                      rate_text(device.link.both_ways) + " both at once, pinned");
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
  write_host(json, report);
  json.member("host_copy_rate", report.host.device.bytes_per_second.value);
  write_devices(json, report);
  write_disks(json, report);
  json.key("advice").begin_array();
  for (const std::string& line : advice(report)) json.value(line);
  json.end_array().end_object();
  return json.finish() + "\n";
}

}  // namespace strata::train
