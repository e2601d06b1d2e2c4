#include "train/config/deepspeed_json.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/ascii.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "core/nearest_name.h"
#include "train/config/base64.h"
#include "train/config/flag_table.h"
#include "train/config/foreign_config.h"
#include "train/config/json_words.h"
#include "train/config/key_table.h"
#include "train/config/template_token.h"

namespace strata::train {
namespace {

/// True if any object inside has "enabled": true.
bool any_enabled(const JsonValue& value) {
  if (value.is(JsonKind::array)) {
    const std::vector<JsonValue> elements = value.elements();
    return std::any_of(elements.begin(), elements.end(), any_enabled);
  }
  if (!value.is(JsonKind::object)) return false;
  for (const auto& [key, member] : value.members()) {
    if (key == "enabled" && is_scalar(member) && same_word(word_of(member), "true")) return true;
    if (any_enabled(member)) return true;
  }
  return false;
}

/// True if one key switches the section on, such as "enabled".
bool names_switch(const KeyRow& row) { return !row.on_switch.empty() && row.on_switch != "*"; }

/// Returns the key without what people write in several ways: case, '-', '_' and blanks.
std::string folded(std::string_view key) {
  std::string text;
  for (const char c : key)
    if (c != '-' && c != '_' && c != ' ') text += ascii_lower_case(c);
  return text;
}

/// True if one of the row's spellings is "--" and this word.
bool is_spelled(const FlagRow& row, const std::string& word) {
  const std::vector<std::string> spellings = spellings_of(row);
  return std::ranges::find(spellings, "--" + word) != spellings.end();
}

/// The key that sets the option; null: none does. A section of DeepSpeed that is called as the
/// option switches nothing on, but that of Strata does.
const KeyRow* key_that_sets(std::string_view option) {
  const std::string own = fmt::format("strata.{}", option);
  for (const KeyRow& row : key_table())
    if (row.path == own || (row.path == option && row.shape != JsonShape::section) ||
        (row.support == Support::obeyed && row.target == option))
      return &row;
  return nullptr;
}

/// Suggests the key of the option that the flag of this name sets, since people write flags of
/// transformers ("learning_rate", "max_steps") into files; "" if there is no such flag.
std::string meant_by_flag(const std::string& key) {
  for (const FlagRow& row : flag_table()) {
    const bool sets = row.use == FlagUse::option || row.use == FlagUse::fixed;
    if (!sets || !is_spelled(row, key)) continue;
    const std::string flag = flag_of(row.target);
    const KeyRow* known = key_that_sets(row.target);
    if (known == nullptr) return ", did you mean the flag " + flag + "?";
    const bool is_top = known->path.find('.') == std::string_view::npos;
    return fmt::format(", did you mean '{}'{}, or {}?", known->path,
                       is_top ? " at the top level" : "", flag);
  }
  return "";
}

enum class Switch { off, on, missing };

Switch switch_of(const KeyRow& row, const JsonValue& section) {
  if (row.on_switch == "*") return any_enabled(section) ? Switch::on : Switch::off;
  if (row.on_switch.empty()) return Switch::on;
  const std::optional<JsonValue> value = section.find(row.on_switch);
  if (!value) return section.size() == 0 ? Switch::off : Switch::missing;
  if (!is_scalar(*value)) return Switch::on;
  // Flags decide on "auto" in a section that Strata obeys; in any other it means off.
  if (same_word(word_of(*value), "auto") && row.support != Support::obeyed) return Switch::off;
  return is_one_of(word_of(*value), "false|none|null|0|") || value->is(JsonKind::null) ? Switch::off
                                                                                       : Switch::on;
}

class Reader {
 public:
  Reader(DeepSpeedSettings& read, bool strict) : read_(read), strict_(strict) {}

  void walk(const JsonValue& section, const std::string& prefix) {
    for (const auto& [key, value] : section.members()) {
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      const KeyRow* row = find_key(path);
      if (row == nullptr) {
        unknown(key, value, prefix);
      } else if (!value.is(JsonKind::null)) {
        handle(*row, value);
      }
    }
  }

 private:
  void note(const JsonValue& value, const std::string& text) {
    read_.findings.notes.push_back(place_of(value) + ": " + text);
  }
  void problem(const JsonValue& value, const std::string& text) {
    read_.findings.problems.push_back(place_of(value) + ": " + text);
  }

  void unknown(const std::string& key, const JsonValue& value, const std::string& prefix) {
    if (key.starts_with('_') || key.starts_with("comment")) return;
    const std::string text = "unknown key" + hint(key, value, prefix);
    const bool ours = prefix.starts_with("strata");
    if (ours || strict_) return problem(value, text);
    read_.findings.warnings.push_back(place_of(value) + ": " + text);
  }

  /// Suggests a key of the section that is spelt like this one but for case, '-' and '_', what a
  /// flag of exactly that name sets, the nearest key of the section, or a section in which the key
  /// is known.
  static std::string hint(const std::string& key, const JsonValue& value,
                          const std::string& prefix) {
    std::vector<std::string_view> known = keys_of_section(prefix);
    const auto is_spelt_like = [&](std::string_view name) {
      const KeyRow* row =
          find_key(prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name));
      const bool is_section = row != nullptr && row->shape == JsonShape::section;
      return is_section == value.is(JsonKind::object) && folded(name) == folded(key);
    };
    if (const auto same = std::ranges::find_if(known, is_spelt_like); same != known.end())
      return fmt::format(", did you mean '{}'?", *same);
    if (const std::string meant = meant_by_flag(key); !meant.empty()) return meant;
    // Some sections have no rows for their keys.
    if (const KeyRow* section = find_key(prefix); section != nullptr && names_switch(*section))
      known.push_back(section->on_switch);
    const std::string near = suggestion(key, known);
    if (!near.empty()) return near;
    for (const KeyRow& row : key_table()) {
      if (row.path.ends_with("." + key)) {
        return fmt::format(", did you mean '{}'?", row.path);
      }
    }
    return "";
  }

  void handle(const KeyRow& row, const JsonValue& value) {
    switch (row.support) {
      case Support::silent:
        return;
      case Support::renamed:
        note(value, "an old spelling of " + std::string(row.target));
        [[fallthrough]];
      case Support::alias:
        return handle(*find_key(row.target), value);
      default:
        break;
    }
    if (row.shape == JsonShape::section) return handle_section(row, value);
    if (value.is(JsonKind::string) && value.as_string() == "auto") return handle_auto(row, value);
    const JsonWords read = words_of(value, row.shape);
    for (const std::string& text : read.problems) read_.findings.problems.push_back(text);
    if (!read.problems.empty()) return;
    if (!read.note.empty()) note(value, read.note);
    const std::vector<std::string>& words = read.words;
    const bool inert = is_scalar(value) && !words.empty() && is_one_of(words[0], row.inert);
    if (row.support == Support::noted) {
      if (!inert) note(value, "accepted, unused: " + said(row));
    } else if (row.support == Support::refused) {
      if (!inert)
        problem(value, "found " + shown(value) + ", which is not supported; " + said(row));
    } else {
      store(row, words, value, false);
    }
  }

  static std::string said(const KeyRow& row) { return std::string(row.text); }
  static std::string shown(const JsonValue& value) {
    return is_scalar(value) ? to_string(value, 0) : "a value";
  }

  void handle_auto(const KeyRow& row, const JsonValue& value) {
    // All other keys take their default, as in DeepSpeed's own strict sections.
    const bool is_amount = row.target == "target.memory";  // all that is free
    if (row.support == Support::obeyed || row.support == Support::fact)
      store(row, {"auto"}, value, !is_amount);
  }

  void handle_section(const KeyRow& row, const JsonValue& value) {
    if (handle_switch_value(row, value)) return;
    const bool off = is_scalar(value) && is_one_of(word_of(value), "false|0|none|");
    if (off) return;
    if (!value.is(JsonKind::object) && row.support == Support::obeyed) {
      return problem(value, "found " + value.describe() + ", expected an object");
    }
    if (row.has_switch && value.is(JsonKind::object)) {
      const Switch state = switch_of(row, value);
      if (state == Switch::missing && row.support != Support::noted) {
        note(value, fmt::format("off: '{}' is not set in it", row.on_switch));
      }
      if (state != Switch::on) {
        store_off(row, value);
        return check_names(row, value);
      }
    }
    if (row.support == Support::refused) return problem(value, "not supported; " + said(row));
    if (row.support == Support::noted) {
      return note(value, "accepted, unused: " + said(row));
    }
    if (row.path == "strata.activation_checkpointing") {
      set("activation_checkpointing", {"true"}, value);
    } else if (row.path == "activation_checkpointing") {
      read_.facts["activation_checkpointing"] = {{"true"}, false, place_of(value), false};
    }
    walk(value, std::string(row.path));
  }

  /// Reports unknown names in a section that is off, whose values do not count: its switch may be
  /// misspelt. Of a section whose keys have no rows, only what looks like its switch.
  void check_names(const KeyRow& row, const JsonValue& section) {
    const std::string prefix(row.path);
    const bool has_rows = !keys_of_section(prefix).empty();
    const bool misses_switch = names_switch(row) && !section.find(row.on_switch);
    for (const auto& [key, value] : section.members()) {
      const KeyRow* inner = find_key(prefix + "." + key);
      const bool named = inner != nullptr && !inner->path.ends_with('*');
      if (named && inner->shape == JsonShape::section && value.is(JsonKind::object)) {
        check_names(*inner, value);
      } else if (inner == nullptr && has_rows) {
        unknown(key, value, prefix);
      } else if (!named && misses_switch && !nearest_name(key, {row.on_switch}).empty()) {
        unknown(key, value, prefix);
      }
    }
  }

  /// Stores of a section that is off only its switch, to compare it with another spelling of it,
  /// and whether it has other keys that count.
  void store_off(const KeyRow& row, const JsonValue& section) {
    if (row.support != Support::obeyed) return;
    const std::optional<JsonValue> value = section.find(row.on_switch);
    const KeyRow* inner = find_key(fmt::format("{}.{}", row.path, row.on_switch));
    if (value && inner != nullptr && !value->is(JsonKind::null)) handle(*inner, *value);
    for (const auto& [key, member] : section.members()) {
      const KeyRow* other = find_key(fmt::format("{}.{}", row.path, key));
      const bool counts = other != nullptr && other != inner && !member.is(JsonKind::null) &&
                          (other->support == Support::obeyed || other->support == Support::fact);
      if (counts) read_.facts[std::string(row.path)] = {{"off"}, false, place_of(section), false};
    }
  }

  /// Handles sections that may also be simply true or false.
  bool handle_switch_value(const KeyRow& row, const JsonValue& value) {
    if (!value.is(JsonKind::boolean)) return false;
    if (row.path == "zero_optimization") {
      note(value, "an old form of \"zero_optimization\": {\"stage\": ...}");
      set("zero.stage", {value.as_boolean() ? "1" : "0"}, value);
      return true;
    }
    if (row.path == "strata.activation_checkpointing") {
      set("activation_checkpointing", {word_of(value)}, value);
      return true;
    }
    return false;
  }

  void store(const KeyRow& row, const std::vector<std::string>& words, const JsonValue& value,
             bool automatic) {
    const bool auto_is_default =
        row.path.starts_with("zero_optimization") || row.path.starts_with("fp16") ||
        row.path.starts_with("bf16") || row.path.starts_with("aio") ||
        row.path.starts_with("tensorboard") || row.path.starts_with("csv_monitor");
    const Given given{words, automatic, place_of(value), auto_is_default};
    if (row.support == Support::fact) return put(read_.facts, std::string(row.path), given);
    const std::vector<std::string_view> options = listed(row.target, '+');
    const bool pair = options.size() > 1;
    if (pair && !automatic && words.size() != options.size())
      return problem(value, fmt::format("found {} numbers, expected two", words.size()));
    for (std::size_t i = 0; i < options.size(); ++i) {
      Given one = given;
      if (pair) one.words = {words[automatic ? 0 : i]};
      put(read_.settings, std::string(options[i]), one);
    }
  }

  void set(const std::string& option, const std::vector<std::string>& words,
           const JsonValue& value) {
    put(read_.settings, option, {words, false, place_of(value), false});
  }

  /// Stores a value; reports a problem if another spelling of the same option says something else.
  void put(Settings& settings, const std::string& name, const Given& given) {
    const auto [old, added] = settings.emplace(name, given);
    if (added) return;
    if (old->second.automatic || given.automatic) {
      if (old->second.automatic) old->second = given;
      return;
    }
    if (!std::equal(old->second.words.begin(), old->second.words.end(), given.words.begin(),
                    given.words.end(), same_word)) {
      read_.findings.problems.push_back(given.where + ": found " + given.words[0] +
                                        ", which contradicts " + old->second.where + ": " +
                                        old->second.words[0]);
    }
  }

  DeepSpeedSettings& read_;
  bool strict_;
};

JsonOptions lenient_options() {
  JsonOptions options;
  options.allow_comments = true;
  options.allow_trailing_commas = true;
  options.allow_infinity = true;
  options.fault = JsonFault::configuration;
  return options;
}

/// Throws ConfigError for files that other flags take.
void refuse_other_files(const JsonValue& document) {
  const auto has = [&](std::string_view key) { return document.find(key).has_value(); };
  const auto refuse = [&](std::string_view what, std::string_view flag) {
    throw ConfigError(
        fmt::format("{}: this is {}; give it as {}, not as --config", document.file(), what, flag));
  };
  if (has("units") && has("budget_bytes")) refuse("a Plan", "--plan");
  if (has("vocab_size") && (has("model_type") || has("architectures")))
    refuse("the config.json of a model", "--model");
  if (has("processor") && has("memory") && has("link"))
    refuse("a hardware file", "--hardware (of plan, or of train with --print-plan --steps 0)");
}

DeepSpeedSettings settings_of(const JsonValue& document, bool strict) {
  if (!document.is(JsonKind::object)) {
    document.fail("found " + document.describe() + ", expected an object");
  }
  refuse_other_files(document);
  DeepSpeedSettings read;
  read.file = document.file();
  Reader(read, strict).walk(document, "");
  interpret_facts(read);
  return read;
}

std::string read_configuration(const std::string& path) {
  try {
    if (const std::optional<std::string> advice = binary_advice(path)) throw ConfigError(*advice);
    return read_whole_file(path, lenient_options().size_limit_bytes);
  } catch (const Error& error) {
    throw ConfigError(error.what());
  }
}

/// Throws ConfigError if the text is not JSON for a reason that can be named.
void refuse_what_is_no_json(std::string_view text, const std::string& file) {
  if (const std::optional<std::string> advice = yaml_advice(text, file)) throw ConfigError(*advice);
  std::string message;
  for (const std::string& token : bare_template_tokens(text))
    message += (message.empty() ? "" : "\n") + file + ":" + token +
               " is an unfilled template token: put a value in its place";
  if (!message.empty()) throw ConfigError(message);
}

}  // namespace

DeepSpeedSettings parse_deepspeed_json(std::string_view text, const std::string& file,
                                       bool strict) {
  refuse_what_is_no_json(text, file);
  return settings_of(parse_json(text, file, lenient_options()), strict);
}

DeepSpeedSettings read_deepspeed_json(const std::string& source, bool strict) {
  constexpr std::size_t kLongestPath = 4096;
  std::error_code error;
  const bool is_file = source.size() < kLongestPath && std::filesystem::exists(source, error);
  const std::optional<std::string> decoded = is_file ? std::nullopt : decode_base64(source);
  if (decoded && decoded->starts_with('{')) {
    return parse_deepspeed_json(*decoded, "base64 configuration", strict);
  }
  if (source.starts_with('{')) return parse_deepspeed_json(source, "--config", strict);
  const std::optional<std::string> advice = is_file ? std::nullopt : preset_advice(source);
  if (advice) throw ConfigError(*advice);
  return parse_deepspeed_json(read_configuration(source), source, strict);
}

}  // namespace strata::train
