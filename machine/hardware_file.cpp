#include "machine/hardware_file.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

constexpr int kVersion = 1;
constexpr std::int64_t kMostFileBytes = 1 << 20;
constexpr double kMostFigure = 1e24;
constexpr int kMostCores = 1 << 16;
constexpr std::int64_t kMostDevices = 1 << 20;
constexpr std::array kSources{Source::assumed, Source::data_sheet, Source::measured};
constexpr std::array<std::string_view, 2> kBackends{"cpu", "cuda"};

enum class Need : std::uint8_t { optional, required };

/// All fields in the order of the file: the one list that reader and writer share.
template <typename Visitor>
void visit(Machine& machine, Visitor& v) {
  v.text("name", machine.name);
  v.text("description", machine.description);
  v.integer("hosts", machine.hosts);
  v.object("processor", [&] {
    v.text("name", machine.processor.name);
    v.figure("cores", machine.processor.cores, Need::required);
    v.figure("vector_bits", machine.processor.vector_bits, Need::required);
    v.nodes("numa_nodes", machine.processor.numa);
  });
  v.object("memory", [&] {
    v.figure("bytes", machine.memory.bytes);
    v.figure("allowed_bytes", machine.memory.allowed_bytes);
    v.figure("locked_bytes", machine.memory.locked_bytes);
    v.figure("bytes_per_second", machine.memory.bytes_per_second, Need::required);
  });
  v.object("device", [&] {
    Device& device = machine.device;
    v.backend("backend", device.capabilities.backend);
    v.integer("count", machine.devices);
    v.names("names", device.names);
    if (!machine.host_is_device()) {
      v.integer("architecture", device.capabilities.architecture, 0);
      v.flag("cudnn", device.capabilities.cudnn);
    }
    v.figure("memory_bytes", device.memory_bytes);
    v.figure("reserved_bytes", device.reserved_bytes);
    v.figure("fp32_flops", device.fp32_flops, Need::required);
    v.figure("bf16_flops", device.bf16_flops, Need::required);
    v.figure("fp8_flops", device.fp8_flops);
    v.figure("product_efficiency", device.product_efficiency, Need::required);
    v.figure("bytes_per_second", device.bytes_per_second, Need::required);
  });
  v.object("link", [&] {
    v.figure("to_device", machine.link.to_device, Need::required);
    v.figure("to_host", machine.link.to_host, Need::required);
    v.figure("both_ways", machine.link.both_ways);
  });
  v.figure("peer_rate", machine.peer_rate, Need::required);
  v.figure("network_rate", machine.network_rate);
  v.object("disk", [&] {
    v.figure("bytes", machine.disk.bytes);
    v.figure("read_rate", machine.disk.read_rate, Need::required);
    v.figure("write_rate", machine.disk.write_rate, Need::required);
    v.figure("mixed_rate", machine.disk.mixed_rate);
    v.integer("request_bytes", machine.disk.request_bytes);
    v.integer("depth", machine.disk.depth);
  });
  v.figure("instruction_seconds", machine.instruction_seconds, Need::required);
}

class Writer {
 public:
  std::string run(Machine machine) {
    json_.begin_object().member("version", kVersion);
    visit(machine, *this);
    json_.end_object();
    return json_.finish() + "\n";
  }

  void text(const char* key, const std::string& value) { json_.member(key, value); }
  template <typename Integer>
  void integer(const char* key, Integer value, int = 1) {
    json_.member(key, value);
  }
  void flag(const char* key, bool value) { json_.member(key, value); }
  void figure(const char* key, const Figure& figure, Need = Need::optional) {
    if (!figure.known()) return;
    json_.key(key).begin_row();
    if (figure.value == std::floor(figure.value) && figure.value < 1e15)
      json_.value(figure.whole());
    else
      json_.value(figure.value);
    json_.value(name_of(figure.source)).end_array();
  }
  void backend(const char* key, kernels::DeviceCapabilities::Backend backend) {
    json_.member(key, kBackends[static_cast<std::size_t>(backend)]);
  }
  void names(const char* key, const std::vector<std::string>& names) {
    json_.key(key).begin_row();
    for (const std::string& name : names) json_.value(name);
    json_.end_array();
  }
  void nodes(const char* key, const std::vector<NumaNode>& nodes) {
    if (nodes.empty()) return;
    json_.key(key).begin_array();
    for (const NumaNode& node : nodes)
      json_.begin_object()
          .member("number", node.number)
          .member("cores", format_core_list(node.cores))
          .end_object();
    json_.end_array();
  }
  template <typename Body>
  void object(const char* key, const Body& body) {
    json_.key(key).begin_object();
    body();
    json_.end_object();
  }

 private:
  JsonWriter json_;
};

class Reader {
 public:
  explicit Reader(const JsonValue& top) : here_(top) {}

  Machine run() {
    Machine machine;
    int version = 0;
    within(here_, [&] {
      integer("version", version);
      if (version != kVersion)
        here_.at("version").fail(fmt::format("expected version {}", kVersion));
      visit(machine, *this);
    });
    require_sense(machine);
    if (machine.host_is_device())
      machine.device.capabilities.workers = static_cast<int>(machine.processor.cores.whole());
    return machine;
  }

  void text(const char* key, std::string& value) { value = required(key).as_string(); }
  template <typename Integer>
  void integer(const char* key, Integer& value, int least = 1) {
    const JsonValue found = required(key);
    const std::int64_t number = found.as_integer();
    if (number < least || number > std::numeric_limits<Integer>::max())
      refuse(found, fmt::format("an integer from {}", least));
    value = static_cast<Integer>(number);
  }
  void flag(const char* key, bool& value) { value = required(key).as_boolean(); }
  void figure(const char* key, Figure& figure, Need need = Need::optional) {
    figure = {};
    const std::optional<JsonValue> found = find(key);
    if (!found && need == Need::optional) return;
    const JsonValue pair = found ? *found : here_.at(key);
    const std::vector<JsonValue> parts = pair.elements();
    if (parts.size() != 2) refuse(pair, "a number and where it comes from, [1e9, \"measured\"]");
    figure.value = parts[0].as_number();
    if (!(figure.value > 0) || figure.value > kMostFigure) refuse(parts[0], "a number above 0");
    const std::string source = parts[1].as_string();
    const auto* known = std::ranges::find(kSources, source, name_of);
    if (known == kSources.end()) refuse(parts[1], "\"assumed\", \"data sheet\" or \"measured\"");
    figure.source = *known;
  }
  void backend(const char* key, kernels::DeviceCapabilities::Backend& backend) {
    const JsonValue found = required(key);
    const auto* known = std::ranges::find(kBackends, found.as_string());
    if (known == kBackends.end()) refuse(found, "\"cpu\" or \"cuda\"");
    backend = static_cast<kernels::DeviceCapabilities::Backend>(known - kBackends.begin());
  }
  void names(const char* key, std::vector<std::string>& names) {
    for (const JsonValue& name : required(key).elements()) names.push_back(name.as_string());
  }
  void nodes(const char* key, std::vector<NumaNode>& nodes) {
    const std::optional<JsonValue> found = find(key);
    if (!found) return;
    for (const JsonValue& element : found->elements())
      within(element, [&] {
        NumaNode node;
        const JsonValue number = required("number"), cores = required("cores");
        node.number = static_cast<int>(number.as_integer());
        if (node.number < 0 || node.number != number.as_integer())
          refuse(number, "the number of a node");
        node.cores = parse_core_list(cores.as_string());
        if (node.cores.empty() || format_core_list(node.cores) != cores.as_string())
          refuse(cores, "a list of cores such as \"0-3,8\"");
        nodes.push_back(std::move(node));
      });
  }
  template <typename Body>
  void object(const char* key, const Body& body) {
    within(required(key), body);
  }

 private:
  void require_sense(const Machine& machine) const {
    const auto require = [&](bool holds, const char* object, const char* key,
                             const std::string& expected) {
      if (!holds) here_.at(object).fail(std::string(key) + ": expected " + expected);
    };
    const double cores = machine.processor.cores, bits = machine.processor.vector_bits;
    require(cores == std::floor(cores) && cores <= kMostCores, "processor", "cores",
            fmt::format("a whole number of at most {}", kMostCores));
    require(bits == 128 || bits == 256 || bits == 512, "processor", "vector_bits",
            "128, 256 or 512");
    const Device& device = machine.device;
    require(!device.memory_bytes.known() || device.reserved_bytes < device.memory_bytes, "device",
            "reserved_bytes", "less than memory_bytes");
    require(machine.host_is_device() || device.memory_bytes.known(), "device", "memory_bytes",
            "an amount, where the device is a GPU");
    if (machine.hosts > 1 && !machine.network_rate.known())
      here_.fail("misses the key \"network_rate\", which a machine of several hosts has");
    require(device.product_efficiency <= 1, "device", "product_efficiency", "at most 1");
    require(std::int64_t{machine.hosts} * machine.devices <= kMostDevices, "device", "count",
            fmt::format("at most {} devices of all hosts", kMostDevices));
  }
  /// Reads the members of `value`, all of which `body` asks for.
  template <typename Body>
  void within(JsonValue value, const Body& body) {
    const JsonValue outer = std::exchange(here_, value);
    std::vector<std::string> outer_keys = std::exchange(keys_, {});
    const auto members = value.members();
    body();
    for (const auto& [key, member] : members)
      if (std::ranges::find(keys_, key) == keys_.end())
        member.fail(fmt::format("unknown key, expected one of {}", fmt::join(keys_, ", ")));
    here_ = outer;
    keys_ = std::move(outer_keys);
  }
  std::optional<JsonValue> find(const char* key) {
    keys_.emplace_back(key);
    return here_.find(key);
  }
  JsonValue required(const char* key) {
    keys_.emplace_back(key);
    return here_.at(key);
  }
  [[noreturn]] static void refuse(const JsonValue& value, const std::string& expected) {
    value.fail("expected " + expected + ", found " + value.describe());
  }

  JsonValue here_;
  std::vector<std::string> keys_;  ///< of this object, that were asked for
};

}  // namespace

std::string to_json(const Machine& machine) { return Writer().run(machine); }

Machine read_hardware(std::string_view text, const std::string& file) {
  return Reader(parse_json(text, file, {.fault = JsonFault::configuration})).run();
}

Machine load_hardware(const std::string& name_or_file) {
  if (std::optional<Machine> known = find_hardware(name_or_file)) return std::move(*known);
  std::error_code error;
  if (std::filesystem::is_regular_file(name_or_file, error))
    return read_hardware(read_whole_file(name_or_file, kMostFileBytes), name_or_file);
  throw ConfigError(fmt::format("hardware '{}' is neither a file nor one of {}", name_or_file,
                                fmt::join(hardware_names(), ", ")));
}

}  // namespace strata::machine
