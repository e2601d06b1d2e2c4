#include "machine/hardware_file.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "machine/hardware_suggestion.h"
#include "machine/hardware_table.h"

namespace strata::machine {
namespace {

constexpr int kVersion = 1;
constexpr std::int64_t kMostFileBytes = 1 << 20;
constexpr int kMostCores = 1 << 16;
constexpr std::int64_t kMostDevices = 1 << 20;
constexpr std::int64_t kMostArchitecture = 1 << 16;
constexpr std::int64_t kMostInRequest = 1 << 30;
constexpr std::int64_t kMostRequests = 1 << 16;
constexpr std::array kSources{Source::assumed, Source::given, Source::data_sheet, Source::measured};
constexpr std::array<std::string_view, 2> kBackends{"cpu", "cuda"};

enum class Need : std::uint8_t { optional, required };

/// The numbers that a figure may have.
struct Range {
  double least, most;
  bool whole;
  std::string_view unit = "";  ///< named where the number is refused
};
constexpr Range kCores{1, kMostCores, true};
constexpr Range kBits{128, 512, true};
// Less than a megabyte of memory, or of what moves in a second, is a number whose unit was
// forgotten; what is reserved or locked may be less.
constexpr Range kMemory{1e6, 1e18, true, " of bytes"};
constexpr Range kPart{1, 1e18, true, " of bytes"};
constexpr Range kRate{1e6, 1e24, false, " of bytes per second"};
constexpr Range kFlops{1e6, 1e24, false, " of FLOP/s"};
constexpr Range kShare{1e-6, 1, false};
constexpr Range kSeconds{1e-12, 1, false};

/// Visits all fields in the order of the file: the one list that reader and writer share.
template <typename Visitor>
void visit(Machine& machine, Visitor& v) {
  v.text("name", machine.name);
  v.text("description", machine.description);
  v.integer("hosts", machine.hosts, 1, kMostDevices);
  v.object("processor", [&] {
    v.text("name", machine.processor.name);
    v.figure("cores", machine.processor.cores, kCores, Need::required);
    v.figure("vector_bits", machine.processor.vector_bits, kBits, Need::required);
    v.nodes("numa_nodes", machine.processor.numa);
  });
  v.object("memory", [&] {
    v.figure("bytes", machine.memory.bytes, kMemory);
    v.figure("allowed_bytes", machine.memory.allowed_bytes, kMemory);
    v.figure("locked_bytes", machine.memory.locked_bytes, kPart);
    v.figure("bytes_per_second", machine.memory.bytes_per_second, kRate, Need::required);
  });
  v.object("device", [&] {
    Device& device = machine.device;
    v.backend("backend", device.capabilities.backend);
    v.integer("count", machine.devices, 1, kMostDevices);
    v.names("names", device.names);
    if (!machine.host_is_device()) {
      v.integer("architecture", device.capabilities.architecture, 0, kMostArchitecture);
      v.flag("cudnn", device.capabilities.cudnn);
    }
    v.figure("memory_bytes", device.memory_bytes, kMemory);
    v.figure("reserved_bytes", device.reserved_bytes, kPart);
    v.figure("fp32_flops", device.fp32_flops, kFlops, Need::required);
    v.figure("bf16_flops", device.bf16_flops, kFlops, Need::required);
    v.figure("fp8_flops", device.fp8_flops, kFlops);
    v.figure("product_efficiency", device.product_efficiency, kShare, Need::required);
    v.figure("attention_efficiency", device.attention_efficiency, kShare);
    v.figure("bytes_per_second", device.bytes_per_second, kRate, Need::required);
    v.figure("memory_efficiency", device.memory_efficiency, kShare);
  });
  v.object("link", [&] {
    v.figure("to_device", machine.link.to_device, kRate, Need::required);
    v.figure("to_host", machine.link.to_host, kRate, Need::required);
    v.figure("both_ways", machine.link.both_ways, kRate);
    v.figure("efficiency", machine.link.efficiency, kShare);
  });
  v.figure("peer_rate", machine.peer_rate, kRate, Need::required);
  v.figure("peer_latency", machine.peer_latency, kSeconds);
  v.figure("network_rate", machine.network_rate, kRate);
  v.figure("network_latency", machine.network_latency, kSeconds);
  v.figure("collective_efficiency", machine.collective_efficiency, kShare);
  v.object("disk", [&] {
    v.figure("bytes", machine.disk.bytes, kMemory);
    v.figure("tbw", machine.disk.tbw, kMemory);
    v.figure("read_rate", machine.disk.read_rate, kRate, Need::required);
    v.figure("write_rate", machine.disk.write_rate, kRate, Need::required);
    v.figure("mixed_rate", machine.disk.mixed_rate, kRate);
    v.integer("request_bytes", machine.disk.request_bytes, 1, kMostInRequest);
    v.integer("depth", machine.disk.depth, 1, kMostRequests);
  });
  v.figure("instruction_seconds", machine.instruction_seconds, kSeconds, Need::required);
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
  void integer(const char* key, Integer value, std::int64_t, std::int64_t) {
    json_.member(key, value);
  }
  void flag(const char* key, bool value) { json_.member(key, value); }
  void figure(const char* key, const Figure& figure, const Range&, Need = Need::optional) {
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
      integer("version", version, kVersion, kVersion);
      visit(machine, *this);
    });
    require_sense(machine);
    if (machine.host_is_device())
      machine.device.capabilities.workers = static_cast<int>(machine.processor.cores.whole());
    return machine;
  }

  void text(const char* key, std::string& value) { value = required(key).as_string(); }
  template <typename Integer>
  void integer(const char* key, Integer& value, std::int64_t least, std::int64_t most) {
    const JsonValue found = required(key);
    const std::int64_t number = found.as_integer();
    if (number < least || number > most)
      refuse(found, least == most ? std::to_string(least)
                                  : fmt::format("an integer from {} to {}", least, most));
    value = static_cast<Integer>(number);
  }
  void flag(const char* key, bool& value) { value = required(key).as_boolean(); }
  void figure(const char* key, Figure& figure, const Range& range, Need need = Need::optional) {
    figure = {};
    const std::optional<JsonValue> found = find(key);
    if (!found && need == Need::optional) return;
    const JsonValue pair = found ? *found : here_.at(key);
    const std::vector<JsonValue> parts = pair.elements();
    if (parts.size() != 2) refuse(pair, "a number and where it comes from, [1e9, \"measured\"]");
    figure.value = parts[0].as_number();
    if (!(figure.value >= range.least && figure.value <= range.most) ||
        (range.whole && figure.value != std::floor(figure.value)))
      refuse(parts[0], fmt::format("a {}number{} from {} to {}", range.whole ? "whole " : "",
                                   range.unit, range.least, range.most));
    const std::string source = parts[1].as_string();
    const auto* known = std::ranges::find(kSources, source, [](Source s) { return name_of(s); });
    if (known == kSources.end())
      refuse(parts[1], "\"assumed\", \"given\", \"data sheet\" or \"measured\"");
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
      if (holds) return;
      const std::optional<JsonValue> found = here_.at(object).find(key);
      if (!found) here_.at(object).fail(std::string(key) + ": expected " + expected);
      refuse(found->is(JsonKind::array) ? found->elements()[0] : *found, expected);
    };
    const double bits = machine.processor.vector_bits;
    require(bits == 128 || bits == 256 || bits == 512, "processor", "vector_bits",
            "128, 256 or 512");
    const Device& device = machine.device;
    require(!device.memory_bytes.known() || device.reserved_bytes < device.memory_bytes, "device",
            "reserved_bytes", "less than memory_bytes");
    require(machine.host_is_device() || device.memory_bytes.known(), "device", "memory_bytes",
            "an amount, where the device is a GPU");
    if (machine.hosts > 1 && !machine.network_rate.known())
      here_.fail("misses the key \"network_rate\", which a machine of several hosts has");
    require(std::int64_t{machine.hosts} * machine.devices <= kMostDevices, "device", "count",
            fmt::format("at most {} devices of all hosts", kMostDevices));
    require_apart(machine.processor);
  }
  /// Throws if nodes share a number or a core, or have more cores than the processor.
  void require_apart(const Processor& processor) const {
    std::set<int> numbers, cores;
    for (std::size_t n = 0; n < processor.numa.size(); ++n) {
      const NumaNode& node = processor.numa[n];
      const auto refuse_its = [&](const char* key, const std::string& expected) {
        refuse(here_.at("processor").at("numa_nodes").elements()[n].at(key), expected);
      };
      if (!numbers.insert(node.number).second)
        refuse_its("number", "a number that no other node has");
      for (const int core : node.cores)
        if (!cores.insert(core).second) refuse_its("cores", "cores that no other node has");
      if (static_cast<double>(cores.size()) > processor.cores)
        refuse_its("cores", fmt::format("at most {} cores of all nodes, as \"cores\" says",
                                        processor.cores.whole()));
    }
  }
  /// Reads the members of `value`; a member that `body` does not ask for is an error.
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
  std::vector<std::string> keys_;  ///< keys of this object that were asked for
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
  const std::vector<std::string> names = hardware_names();
  std::string wanted = std::filesystem::path(name_or_file).filename().string();
  if (wanted.ends_with(".json")) wanted.resize(wanted.size() - std::string_view(".json").size());
  const std::string near = hardware_suggestion(wanted, names);
  throw ConfigError(fmt::format("hardware '{}' is not known{} is neither a file nor one of {}",
                                name_or_file, near.empty() ? "; it" : near + " It",
                                fmt::join(names, ", ")));
}

}  // namespace strata::machine
