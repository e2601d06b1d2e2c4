// Converts words to values of option fields, and back.
#include <fmt/core.h>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "core/error.h"
#include "core/json_writer.h"
#include "train/config/option_fields.h"
#include "train/config/settings.h"
#include "train/config/template_token.h"

namespace strata::train {
namespace {

struct TimeUnit {
  std::string_view name;
  std::int64_t seconds;
};
constexpr TimeUnit kTimeUnits[] = {{"s", 1},    {"sec", 1},     {"m", 60},
                                   {"min", 60}, {"h", 60 * 60}, {"hour", 60 * 60}};

}  // namespace

std::string range_text(const OptionField& field, std::string_view kind) {
  std::string text = fmt::format("expected {}", kind);
  const auto number = [](double value) {
    return value == std::floor(value) && std::abs(value) < 1e15
               ? std::to_string(static_cast<std::int64_t>(value))
               : json_number(value);
  };
  if (field.range.highest < 1e15) {
    return text + " from " + number(field.range.lowest) + " to " + number(field.range.highest);
  }
  return text + " of at least " + number(field.range.lowest);
}

namespace {

/// Assigns words to one field.
struct Assign {
  const OptionField& field;
  const std::vector<std::string>& words;
  std::string& note;

  [[nodiscard]] std::string found(const std::string& expected) const {
    const std::string text = joined(words, " ");
    return "found '" + text + "', " + expected +
           (is_template_token(text) ? " (an unfilled template token)" : "");
  }

  std::string operator()(bool* target) const {
    for (const std::string_view yes : {"true", "1", "yes", "on"}) {
      if (same_word(words[0], yes)) return *target = true, "";
    }
    for (const std::string_view no : {"false", "0", "no", "off"}) {
      if (same_word(words[0], no)) return *target = false, "";
    }
    return found("expected true or false");
  }

  std::string operator()(std::int64_t* target) const {
    return field.range.kind == NumberKind::bytes ? bytes(target) : whole_number(target);
  }

  [[nodiscard]] std::string bytes(std::int64_t* target) const {
    if (const std::string both = both_readings_of_size(words[0]); !both.empty())
      return found("which has two readings; write " + both);
    const std::optional<std::int64_t> size = parse_byte_size(words[0]);
    const bool low = size && static_cast<double>(*size) < field.range.lowest;
    if (!size || low || static_cast<double>(*size) > field.range.highest) {
      return found(
          range_text(field, "bytes, or a number with KB, MB, GB, TB, KiB, MiB, GiB or TiB,"));
    }
    *target = *size;
    return "";
  }

  /// Takes a value such as "0.1", if the field allows a part of all steps.
  [[nodiscard]] bool takes_part() const {
    double part = 0;
    if (field.part_target == nullptr || !parse_number(words[0], part) || part <= 0 || part >= 1)
      return false;
    *field.part_target = part;
    return true;
  }

  std::string whole_number(std::int64_t* target) const {
    if (takes_part()) return "";
    const std::string& word = words[0];
    const std::string expected = range_text(
        field, field.part_target == nullptr ? "a whole number"
                                            : "a part of all steps (0.1) or a whole number");
    std::int64_t whole = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), whole);
    double number = static_cast<double>(whole);
    if (error != std::errc() || rest != word.data() + word.size()) {
      if (field.range.kind == NumberKind::most && same_word(word, "Infinity"))
        return *target = static_cast<std::int64_t>(field.range.highest), "";
      if (!parse_number(word, number)) return found(expected);
      if (number != std::floor(number)) {
        if (field.range.kind != NumberKind::count) return found(expected);
        number = std::floor(number);
        note = "found " + word + ", rounded down to a whole number of elements";
      }
      if (field.range.kind == NumberKind::most) number = std::min(number, field.range.highest);
      if (std::abs(number) >= 9.2e18) return found(expected);
      whole = static_cast<std::int64_t>(number);
    }
    if (field.range.kind == NumberKind::most && number > field.range.highest)
      return *target = static_cast<std::int64_t>(field.range.highest), "";
    if (number < field.range.lowest || number > field.range.highest) return found(expected);
    *target = whole;
    return "";
  }

  /// Reads "500:502", "500" or "all".
  std::string operator()(StepRange* target) const {
    if (same_word(words[0], "all")) return *target = {}, "";
    const std::string& word = words[0];
    const std::size_t colon = word.find(':');
    double first = 0, last = 0;
    const bool numbers =
        parse_number(word.substr(0, colon), first) &&
        parse_number(colon == std::string::npos ? word : word.substr(colon + 1), last);
    if (!numbers || first != std::floor(first) || last != std::floor(last) ||
        first < field.range.lowest || last < first || last > field.range.highest)
      return found("expected steps as FIRST:LAST, counted from 1, or all");
    *target = {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)};
    return "";
  }

  std::string operator()(SaveInterval* target) const {
    if (takes_part()) return "";
    const std::string& word = words[0];
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::string_view unit(rest, static_cast<std::size_t>(word.data() + word.size() - rest));
    const std::string expected =
        "expected a number of steps (500) or a part of them all (0.1), or a time (30min, 45s, 2h), "
        "0: at the end only";
    if (error != std::errc() || number < 0 || static_cast<double>(number) > field.range.highest)
      return found(expected);
    if (unit.empty()) return *target = {.steps = number}, "";
    for (const TimeUnit& time : kTimeUnits)
      if (same_word(unit, time.name))
        return *target = {.steps = 0, .seconds = number * time.seconds}, "";
    return found(expected);
  }

  std::string operator()(double* target) const {
    double number = 0;
    if (!parse_number(words[0], number) || number < field.range.lowest ||
        number > field.range.highest) {
      return found(range_text(field, "a number"));
    }
    *target = number;
    return "";
  }

  std::string operator()(std::string* target) const { return *target = words[0], ""; }
  std::string operator()(std::vector<std::string>* target) const { return *target = words, ""; }

  std::string operator()(std::vector<runtime::BlockActions>* target) const {
    if (words[0].empty()) return *target = {}, "";
    const std::string file = "actions";
    try {
      return *target = runtime::read_block_actions(words[0], file), "";
    } catch (const ConfigError& error) {
      // The caller names who gave the text; its line is the only one.
      const std::string_view text = error.what();
      const std::size_t line = text.starts_with(file + ":") ? text.find(": ") : text.npos;
      return std::string(line == text.npos ? text : text.substr(line + 2));
    }
  }

  std::string operator()(std::uint8_t* target) const {
    std::string names;
    for (const Choice& choice : field.words) {
      if (same_word(words[0], choice.name)) return *target = choice.value, "";
      if (choice.is_offered) names += (names.empty() ? "" : ", ") + std::string(choice.name);
    }
    return found("expected one of " + names);
  }
};

struct ToText {
  const OptionField& field;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::int64_t* value) const {
    return field.range.kind == NumberKind::bytes ? byte_size_text(*value) : std::to_string(*value);
  }
  std::string operator()(const double* value) const { return json_number(*value); }
  std::string operator()(const StepRange* value) const {
    if (value->last == StepRange().last) return "all";
    return fmt::format("{}:{}", value->first, value->last);
  }
  std::string operator()(const SaveInterval* value) const {
    return value->seconds > 0 ? std::to_string(value->seconds) + "s" : std::to_string(value->steps);
  }
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const std::vector<std::string>* value) const {
    return joined(*value, " ");
  }
  std::string operator()(const std::vector<runtime::BlockActions>* value) const {
    return value->empty() ? "" : runtime::to_json(*value);
  }
  std::string operator()(const std::uint8_t* value) const {
    for (const Choice& choice : field.words) {
      if (choice.value == *value) return std::string(choice.name);
    }
    return "";
  }
};

}  // namespace

std::string assign(const OptionField& field, const std::vector<std::string>& words,
                   std::string& note) {
  const bool list = std::holds_alternative<std::vector<std::string>*>(field.target);
  if (words.empty() || (words.size() > 1 && !list)) {
    return fmt::format("found {} values, expected one", words.size());
  }
  return std::visit(Assign{field, words, note}, field.target);
}

std::string assign(TrainOptions& options, std::string_view name,
                   const std::vector<std::string>& words, std::string& note) {
  const std::vector<OptionField> fields = option_fields(options);
  const OptionField* field = find_field(fields, name);
  STRATA_CHECK(field != nullptr, name);
  return assign(*field, words, note);
}

std::string text_of(const OptionField& field) {
  if (field.part_target != nullptr && *field.part_target > 0)
    return json_number(*field.part_target);
  return std::visit(ToText{field}, field.target);
}

}  // namespace strata::train
