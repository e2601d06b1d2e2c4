#include "machine/hardware_override.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "core/byte_size.h"
#include "core/error.h"
#include "core/integer.h"
#include "core/nearest_name.h"
#include "core/too_few_bytes.h"
#include "machine/hardware_file.h"

namespace strata::machine {
namespace {

constexpr std::int64_t kMostBytes = 1'000'000'000'000'000'000;
constexpr std::int64_t kMostCounted = 1 << 20;
constexpr std::int64_t kMostOverrideCores = 1 << 16;
constexpr double kLeastShare = 1e-6;

enum class Kind : std::uint8_t {
  amount,
  amount_or_zero,
  rate,
  duration,
  cores,
  count,
  drive,
  share
};

struct Key {
  std::string_view name;
  Kind kind;
  void (*set)(Machine& machine, double value);
};

/// Sets rates of one direction or both (0: stays). What both reach together changes in proportion.
void set_pair(Figure& one, Figure& other, Figure& together, double to_one, double to_other) {
  const double before = one + other;
  if (to_one > 0) one = given(to_one);
  if (to_other > 0) other = given(to_other);
  if (together.known()) together = assumed(std::max(1.0, together * ((one + other) / before)));
}

void set_link(Machine& machine, double up, double down) {
  set_pair(machine.link.to_device, machine.link.to_host, machine.link.both_ways, up, down);
}

void set_disk(Machine& machine, double read, double write) {
  set_pair(machine.disk.read_rate, machine.disk.write_rate, machine.disk.mixed_rate, read, write);
}

void override_memory(Machine& machine, double bytes) {
  machine.memory.bytes = given(bytes);
  machine.memory.allowed_bytes = {};
}

void override_cores(Machine& machine, double cores) {
  set_cores(machine, cores);
  machine.processor.numa.clear();
  machine.processor.cores.source = Source::given;
  if (!machine.host_is_device()) return;
  Device& device = machine.device;
  for (Figure* rate :
       {&device.fp32_flops, &device.bf16_flops, &device.fp8_flops, &device.bytes_per_second})
    rate->source = Source::assumed;
}

/// Takes the drives away for 0.
void override_drives(Machine& machine, double rate) {
  if (rate > 0)
    set_disk(machine, rate, rate);
  else
    machine.disk.bytes = machine.disk.tbw = {};
}

constexpr Key kKeys[] = {
    {"memory", Kind::amount, override_memory},
    {"device_memory", Kind::amount,
     [](Machine& machine, double bytes) { machine.device.memory_bytes = given(bytes); }},
    {"reserved", Kind::amount_or_zero,
     [](Machine& machine, double bytes) {
       machine.device.reserved_bytes = bytes > 0 ? given(bytes) : Figure{};
     }},
    {"link", Kind::rate, [](Machine& machine, double rate) { set_link(machine, rate, rate); }},
    {"link_up", Kind::rate, [](Machine& machine, double rate) { set_link(machine, rate, 0); }},
    {"link_down", Kind::rate, [](Machine& machine, double rate) { set_link(machine, 0, rate); }},
    {"disk", Kind::drive, override_drives},
    {"disk_read", Kind::rate, [](Machine& machine, double rate) { set_disk(machine, rate, 0); }},
    {"disk_write", Kind::rate, [](Machine& machine, double rate) { set_disk(machine, 0, rate); }},
    {"disk_bytes", Kind::amount,
     [](Machine& machine, double bytes) { machine.disk.bytes = given(bytes); }},
    {"tbw", Kind::amount, [](Machine& machine, double bytes) { machine.disk.tbw = given(bytes); }},
    {"network", Kind::rate,
     [](Machine& machine, double rate) { machine.network_rate = given(rate); }},
    {"peer", Kind::rate, [](Machine& machine, double rate) { machine.peer_rate = given(rate); }},
    {"latency", Kind::duration,
     [](Machine& machine, double ns) { machine.network_latency = given(ns * 1e-9); }},
    {"peer_latency", Kind::duration,
     [](Machine& machine, double ns) { machine.peer_latency = given(ns * 1e-9); }},
    {"products", Kind::share,
     [](Machine& machine, double share) { machine.device.product_efficiency = given(share); }},
    {"attention", Kind::share,
     [](Machine& machine, double share) { machine.device.attention_efficiency = given(share); }},
    {"elementwise", Kind::share,
     [](Machine& machine, double share) { machine.device.memory_efficiency = given(share); }},
    {"copies", Kind::share,
     [](Machine& machine, double share) { machine.link.efficiency = given(share); }},
    {"collectives", Kind::share,
     [](Machine& machine, double share) { machine.collective_efficiency = given(share); }},
    {"cores", Kind::cores, override_cores},
    {"hosts", Kind::count,
     [](Machine& machine, double hosts) { machine.hosts = static_cast<int>(hosts); }},
    {"devices", Kind::count,
     [](Machine& machine, double devices) { machine.devices = static_cast<int>(devices); }},
};

std::vector<std::string_view> key_names() {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) names.push_back(key.name);
  return names;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = 0; comma != text.npos;) {
    comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma != text.npos) text.remove_prefix(comma + 1);
  }
  return parts;
}

std::string expected(Kind kind) {
  switch (kind) {
    case Kind::amount:
    case Kind::amount_or_zero:
      return "an amount such as 64GB";
    case Kind::rate:
      return "a rate such as 12GB/s (bytes) or 100Gb/s (bits)";
    case Kind::duration:
      return "a time such as 5us or 500ns, at most a second";
    case Kind::drive:
      return "none, or a rate such as 5GB/s";
    case Kind::cores:
      return fmt::format("a whole number from 1 to {}", kMostOverrideCores);
    case Kind::count:
      return fmt::format("a whole number from 1 to {}", kMostCounted);
    case Kind::share:
      return fmt::format("a share from {} to 1, such as 0.7", kLeastShare);
  }
  return "";
}

std::optional<double> amount_of(std::optional<std::int64_t> bytes) {
  if (!bytes || *bytes < kLeastMeantBytes || *bytes > kMostBytes) return {};
  return static_cast<double>(*bytes);
}

/// Returns what of an amount or a rate has to be made clear: its unit, or which of two it has; ""
/// if it is wrong in other ways.
std::string unclear(Kind kind, std::string_view text) {
  const bool is_amount = kind == Kind::amount || kind == Kind::amount_or_zero;
  if (!is_amount && kind != Kind::rate && kind != Kind::drive) return "";
  const std::string both = is_amount ? both_readings_of_size(text) : both_readings_of_rate(text);
  if (!both.empty()) return "which has two readings; write " + both;
  const std::optional<std::int64_t> bytes =
      is_amount ? parse_byte_size(text) : parse_byte_rate(text);
  if (!bytes || *bytes == 0 || *bytes >= kLeastMeantBytes) return "";
  return is_amount ? too_few_bytes(text, *bytes, "64GB")
                   : too_few_bytes(text, *bytes, "12GB/s", " per second");
}

std::optional<std::int64_t> ns_from(std::string_view text) {
  constexpr std::int64_t kMostNs = 1'000'000'000;
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}};
  for (const auto& [unit, ns] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    const std::optional<std::int64_t> found = parse_integer(text);
    if (!found || *found < 1 || *found > kMostNs / ns) return {};
    return *found * ns;
  }
  return {};
}

std::optional<double> share_from(std::string_view text) {
  double share = 0;
  const char* end = text.data() + text.size();
  const auto [stopped_at, error] = std::from_chars(text.data(), end, share);
  if (error != std::errc() || stopped_at != end || !(share >= kLeastShare && share <= 1)) return {};
  return share;
}

/// Returns what the text says; no value if it is none of its kind.
std::optional<double> value_of(Kind kind, std::string_view text) {
  switch (kind) {
    case Kind::amount_or_zero:
      if (parse_byte_size(text) == 0) return 0;
      [[fallthrough]];
    case Kind::amount:
      return amount_of(parse_byte_size(text));
    case Kind::drive:
      if (text == "none") return 0;
      return value_of(Kind::rate, text);
    case Kind::rate:
      return amount_of(parse_byte_rate(text));
    case Kind::duration:
      return ns_from(text);
    case Kind::cores:
    case Kind::count: {
      const std::optional<std::int64_t> found = parse_integer(text);
      const std::int64_t most = kind == Kind::cores ? kMostOverrideCores : kMostCounted;
      if (!found || *found < 1 || *found > most) return {};
      return found;
    }
    case Kind::share:
      return share_from(text);
  }
  return {};
}

/// Reads and applies the parts of one machine; messages name the machine and the part.
class Overrides {
 public:
  Overrides(Machine& machine, std::string_view whole) : machine_(machine), whole_(whole) {}

  void take(std::string_view part) {
    const std::size_t equals = part.find('=');
    if (equals == part.npos)
      refuse(fmt::format("found '{}', expected KEY=VALUE with a key of {}", part,
                         fmt::join(key_names(), ", ")));
    const std::string_view name = part.substr(0, equals), value = part.substr(equals + 1);
    const auto* key = std::ranges::find(kKeys, name, &Key::name);
    if (key == std::end(kKeys))
      refuse(fmt::format("{}: unknown key '{}'{} known keys are {}", part, name,
                         after_suggestion(name), fmt::join(key_names(), ", ")));
    if (!given_.insert(name).second) refuse(fmt::format("{}: '{}' is given twice", part, name));
    const std::optional<double> number = value_of(key->kind, value);
    if (const std::string what = unclear(key->kind, value); !number && !what.empty())
      refuse(fmt::format("{}: found '{}', {}", part, value, what));
    if (!number)
      refuse(fmt::format("{}: found '{}', expected {}", part, value, expected(key->kind)));
    key->set(machine_, *number);
    has_no_drive_ = has_no_drive_ || (key->kind == Kind::drive && *number == 0);
  }

  void require_sense() const {
    const Device& device = machine_.device;
    if (given_.contains("device_memory") && machine_.host_is_device())
      refuse("device_memory: the processor plays the device of this machine; give memory");
    if (device.memory_bytes.known() && device.reserved_bytes >= device.memory_bytes)
      refuse(
          fmt::format("the device has {} bytes of memory, and {} of them are reserved; "
                      "give a larger device_memory or a smaller reserved",
                      device.memory_bytes.whole(), device.reserved_bytes.whole()));
    if (machine_.hosts > 1 && !machine_.network_rate.known())
      refuse(fmt::format("{} hosts need a network between them; add network=25GB/s, or what it is",
                         machine_.hosts));
    if (std::int64_t{machine_.hosts} * machine_.devices > kMostCounted)
      refuse(fmt::format("{} hosts of {} devices: expected at most {} devices in all",
                         machine_.hosts, machine_.devices, kMostCounted));
    for (const char* key : {"disk_read", "disk_write", "disk_bytes", "tbw"})
      if (has_no_drive_ && given_.contains(key))
        refuse(fmt::format("disk=none leaves no drive, and {} describes one; remove one of them",
                           key));
    for (const char* key : {"disk", "disk_read", "disk_write", "tbw"})
      if (!has_no_drive_ && given_.contains(key) && !machine_.disk.bytes.known())
        refuse(fmt::format(
            "{} describes a drive, and the machine has none; add disk_bytes=2TB, or what it has",
            key));
  }

 private:
  static std::string after_suggestion(std::string_view name) {
    const std::string near = suggestion(name, key_names());
    return near.empty() ? ";" : near;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError(fmt::format("hardware '{}': {}", whole_, what));
  }

  Machine& machine_;
  std::string_view whole_;
  std::set<std::string_view> given_;
  bool has_no_drive_ = false;
};

}  // namespace

void override_hardware(Machine& machine, std::string_view overrides, std::string_view whole) {
  if (overrides.empty()) return;
  Overrides reader(machine, whole);
  const std::vector<std::string_view> parts = parts_of(overrides);
  for (const std::string_view part : parts) reader.take(part);
  reader.require_sense();
  machine.description += fmt::format(" with {}", fmt::join(parts, ", "));
}

Machine load_overridden_hardware(const std::string& text) {
  std::error_code error;
  const std::size_t comma = text.find(',');
  if (comma == text.npos || std::filesystem::is_regular_file(text, error))
    return load_hardware(text);
  const std::string name = text.substr(0, comma);
  if (name.find('=') != name.npos && !std::filesystem::is_regular_file(name, error))
    throw ConfigError(fmt::format(
        "hardware '{}': '{}' changes a machine; name the machine before it, as in rtx4090,{}", text,
        name, name));
  Machine machine = load_hardware(name);
  const std::string overrides = text.substr(comma + 1);
  if (overrides.empty())
    throw ConfigError(
        fmt::format("hardware '{}': found nothing after the comma, expected KEY=VALUE", text));
  override_hardware(machine, overrides, text);
  return machine;
}

std::vector<std::string> split_hardware_list(std::string_view text) {
  std::vector<std::string> machines;
  for (std::string_view part : parts_of(text)) {
    const std::size_t first = part.find_first_not_of(' ');
    if (first == part.npos) continue;
    part = part.substr(first, part.find_last_not_of(' ') - first + 1);
    if (part.find('=') == part.npos || machines.empty())
      machines.emplace_back(part);
    else
      machines.back().append(",").append(part);
  }
  return machines;
}

}  // namespace strata::machine
