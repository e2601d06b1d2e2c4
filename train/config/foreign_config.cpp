#include "train/config/foreign_config.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>

#include "core/ascii.h"
#include "core/file.h"
#include "train/config/settings.h"
#include "train/models/unusable_model.h"

namespace strata::train {
namespace {

struct YamlLine {
  int number = 0;
  std::string value;
};

std::string_view trimmed(std::string_view text) {
  const auto edge = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '"' || c == '\'';
  };
  while (!text.empty() && edge(text.front())) text.remove_prefix(1);
  while (!text.empty() && edge(text.back())) text.remove_suffix(1);
  return text;
}

/// Reads "key: value" of every line, whatever its section; the first line of a name counts.
std::map<std::string, YamlLine, std::less<>> yaml_lines(std::string_view text) {
  std::map<std::string, YamlLine, std::less<>> lines;
  std::istringstream in{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::string_view rest = line;
    rest = rest.substr(0, rest.find(" #"));
    const std::size_t colon = rest.find(':');
    if (rest.starts_with('#') || colon == std::string_view::npos) continue;
    if (colon + 1 < rest.size() && rest[colon + 1] != ' ') continue;
    const std::string_view key = trimmed(rest.substr(0, colon));
    if (key.find_first_of(" {}[],") != std::string_view::npos || key.empty()) continue;
    lines.emplace(key, YamlLine{number, std::string(trimmed(rest.substr(colon + 1)))});
  }
  return lines;
}

/// True if the text, after leading comments, begins like JSON: with a brace or a comment in /* */.
bool begins_like_json(std::string_view text) {
  for (;;) {
    const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first == std::string_view::npos) return true;
    text.remove_prefix(first);
    if (text.front() != '#' && !text.starts_with("//"))
      return text.front() == '{' || text.starts_with("/*");
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

struct YamlFlag {
  std::string_view key;
  std::string_view flag;
  std::string_view nothing;  ///< the value that asks for nothing
};

/// Keys of accelerate's deepspeed_config section.
constexpr std::array kAccelerate = {
    YamlFlag{"zero_stage", "--zero", "0"},
    YamlFlag{"mixed_precision", "--dtype", "no"},
    YamlFlag{"gradient_accumulation_steps", "--accumulation", "1"},
    YamlFlag{"gradient_clipping", "--gradient-clipping", "1.0"},
    YamlFlag{"offload_optimizer_device", "--offload-optimizer", "none"},
    YamlFlag{"offload_param_device", "--offload-param", "none"},
};

struct Preset {
  std::string_view name;
  std::string_view flags;
};

/// Names of axolotl's files (zero1, zero3_bf16 ...) and LLaMA-Factory's (ds_z3_config), bare.
constexpr std::array kPresets = {
    Preset{"zero0", "--zero 0"},
    Preset{"zero1", "--zero 1"},
    Preset{"zero1_torch_compile", "--zero 1"},
    Preset{"zero2", "--zero 2"},
    Preset{"zero2_torch_compile", "--zero 2"},
    Preset{"zero3", "--zero 3"},
    Preset{"zero3_bf16", "--zero 3 --bf16"},
    Preset{"zero2_bf16", "--zero 2 --bf16"},
    Preset{"zero3_bf16_cpuoffload_all",
           "--zero 3 --bf16 --offload-optimizer cpu --offload-param cpu"},
    Preset{"zero3_bf16_cpuoffload_params", "--zero 3 --bf16 --offload-param cpu"},
    Preset{"zero3_cpu", "--zero 3 --offload-optimizer cpu --offload-param cpu"},
    Preset{"zero3_offload", "--zero 3 --offload-optimizer cpu --offload-param cpu"},
    Preset{"zero2_offload", "--zero 2 --offload-optimizer cpu"},
    Preset{"zero2_cpu", "--zero 2 --offload-optimizer cpu"},
    Preset{"ds_z0_config", "--zero 0"},
    Preset{"ds_z2_config", "--zero 2"},
    Preset{"ds_z2_offload_config", "--zero 2 --offload-optimizer cpu"},
    Preset{"ds_z3_config", "--zero 3"},
    Preset{"ds_z3_offload_config", "--zero 3 --offload-optimizer cpu --offload-param cpu"},
    Preset{"ds_config_zero2", "--zero 2"},
    Preset{"ds_config_zero3", "--zero 3"},
};

/// Normalizes "examples/deepspeed/ds_z3_config.json" to "ds_z3_config", "zero-3" to "zero3".
std::string preset_name(std::string_view source) {
  source = source.substr(source.rfind('/') + 1);
  if (source.ends_with(".json")) source.remove_suffix(5);
  std::string name;
  for (const char c : source) name += c == '-' ? '_' : ascii_lower_case(c);
  for (const char stage : {'0', '1', '2', '3'})
    for (const std::string& form : {std::string("zero_") + stage, std::string("stage") + stage,
                                    std::string("zero_stage") + stage, std::string("z") + stage})
      if (name == form) return std::string("zero") + stage;
  return name;
}

}  // namespace

std::optional<std::string> binary_advice(const std::string& path) {
  constexpr std::int64_t kLookedAtBytes = 4096;
  const File file = File::open_for_reading(path);
  std::string beginning(static_cast<std::size_t>(std::min(file.size_bytes(), kLookedAtBytes)),
                        '\0');
  file.read(0, std::as_writable_bytes(std::span(beginning)));
  if (beginning.find('\0') == std::string::npos) return std::nullopt;
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF"))
    return fmt::format("{} is UTF-16, and a DeepSpeed JSON is UTF-8: iconv -f UTF-16 -t UTF-8 {}",
                       path, path);
  if (!path.ends_with(".safetensors") && !begins_like_safetensors(beginning))
    return path + " is a binary file, not a DeepSpeed JSON";
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return fmt::format(
      "{} is a file of weights (safetensors), not a DeepSpeed JSON; to train them give the "
      "directory: --model {}",
      path, folder.empty() ? "." : folder);
}

std::optional<std::string> yaml_advice(std::string_view text, const std::string& source) {
  if (begins_like_json(text)) return std::nullopt;
  const auto lines = yaml_lines(text);
  const bool named = source.ends_with(".yaml") || source.ends_with(".yml");
  if (lines.empty() || (!named && lines.size() < 2)) return std::nullopt;
  const auto at = [&](std::string_view key) {
    const auto it = lines.find(key);
    return it == lines.end() || it->second.value.empty() ? nullptr : &it->second;
  };
  for (const char* key : {"deepspeed_config_file", "deepspeed"})
    if (const YamlLine* file = at(key))
      return fmt::format("{} is YAML, not a DeepSpeed JSON; its line {} names one: --config {}",
                         source, file->number, file->value);
  if (at("distributed_type") == nullptr && at("zero_stage") == nullptr)
    return source + " is YAML, not a DeepSpeed JSON; give what it says as flags (train --help)";
  std::string flags;
  for (const YamlFlag& row : kAccelerate) {
    const YamlLine* line = at(row.key);
    if (line == nullptr || same_word(line->value, row.nothing) || line->value == "auto") continue;
    flags += " " + std::string(row.flag) + " " + line->value;
  }
  const YamlLine* ranks = at("num_processes");
  const std::string launch = ranks == nullptr ? "" : "mlaunch -np " + ranks->value + " train";
  return source +
         " is a configuration of accelerate (YAML), not a DeepSpeed JSON; give what it "
         "says as flags: " +
         (launch.empty() ? "train" : launch) + flags;
}

std::optional<std::string> preset_advice(std::string_view source) {
  const std::string name = preset_name(source);
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    return std::string(source) +
           ": no such file; as the name of a preset it means: " + std::string(preset.flags);
  }
  return std::nullopt;
}

}  // namespace strata::train
