// The options of `train`. A row holds all facts about one option (option_rows_*.cpp); a field is a
// row with the option's place in one TrainOptions. Flags, JSON keys, help, printing, manifests and
// docs/configuration.md are made from these rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "train/config/key_table.h"
#include "train/config/options.h"

namespace strata::train {

/// Points to a field of TrainOptions; std::uint8_t: an enumeration, whose words the row lists.
using OptionTarget =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                 SaveInterval*, StepRange*, std::uint8_t*, std::vector<runtime::BlockActions>*>;
using OptionPlace = OptionTarget (*)(TrainOptions&);

/// A word of an enumeration.
struct Choice {
  template <typename E>
  constexpr Choice(E choice, std::string_view word, bool offered = true)
      : value(static_cast<std::uint8_t>(choice)), name(word), is_offered(offered) {}

  std::uint8_t value;
  std::string_view name;  ///< a value's first name is printed
  bool is_offered;        ///< false: only --print-config uses it, for an option not given
};

/// The way in which the words for a whole number are read.
enum class NumberKind {
  whole,
  count,  ///< a fraction is rounded down with a note (some write 0.9 * hidden^2)
  most,   ///< numbers above `highest` become `highest`: 1e20 steps mean never
  bytes,  ///< bytes, with or without a unit (byte_size.h)
};

/// The allowed values of a number.
struct Range {
  double lowest = 0;
  double highest = 1e300;
  NumberKind kind = NumberKind::whole;
  OptionPlace part = nullptr;  ///< intervals only: place of a value below one, a part of all steps
};

/// The flag that sets an option.
struct Spelling {
  std::string_view spellings = "";   ///< same form as in FlagRow
  std::string_view value_name = "";  ///< "": from the type, such as N or cpu|nvme
  bool comma_separated = false;
};

/// The JSON key that sets an option and nothing else.
struct Key {
  std::string_view path = "";
  std::string_view fallback = "";    ///< DeepSpeed's default
  JsonShape shape = JsonShape::any;  ///< any: from the type
};

/// Names of the option in --lr_scheduler_kwargs, separated by commas.
struct Argument {
  std::string_view names = "";
};

/// The Plan's field that the option sets, to blame the option for problems (step/check_plan.h).
struct Decides {
  std::string_view field = "";
};

struct OptionRow {
  /// Takes name, place, then any of the facts below, the meaning last.
  template <typename... Facts>
  constexpr OptionRow(std::string_view option, OptionPlace field, const Facts&... facts)
      : name(option), place(field) {
    (set(facts), ...);
  }

  std::string_view name;  ///< "zero.stage": for messages, --print-config and manifests
  OptionPlace place;
  std::string_view meaning;  ///< text for --help and docs/configuration.md
  std::span<const Choice> words;
  Range range;
  Spelling flag;
  Key key;
  Argument argument;
  Decides decides;

 private:
  constexpr void set(std::string_view said) { meaning = said; }
  constexpr void set(std::span<const Choice> said) { words = said; }
  constexpr void set(const Range& said) { range = said; }
  constexpr void set(const Spelling& said) { flag = said; }
  constexpr void set(const Key& said) { key = said; }
  constexpr void set(const Argument& said) { argument = said; }
  constexpr void set(const Decides& said) { decides = said; }
};

/// The form of an option's values, from its type.
struct OptionKind {
  JsonShape shape = JsonShape::any;  ///< shape in JSON
  std::string value_name;            ///< name in --help: "N", "cpu|nvme"; "" for texts
  bool is_switch = false;            ///< the flag alone means true
  bool is_list = false;
};
OptionKind kind_of(const OptionRow& row);

/// All rows in the order of --help.
const std::vector<OptionRow>& option_rows();

struct OptionField : OptionRow {
  OptionTarget target;
  double* part_target = nullptr;  ///< intervals only: place of a part of all steps
};

/// All fields of `options`, in the order of --print-config, in which TrainOptions declares them.
std::vector<OptionField> option_fields(TrainOptions& options);

/// Returns null if there is no field of that name.
const OptionField* find_field(const std::vector<OptionField>& fields, std::string_view name);

/// The text "expected a number from 0 to 3", where `kind` is "a number".
std::string range_text(const OptionField& field, std::string_view kind);

/// Sets the field. Returns "" or "found X, expected Y". Sets `note` if it changed the value.
std::string assign(const OptionField& field, const std::vector<std::string>& words,
                   std::string& note);

/// Sets the option of that name in the same way. Aborts if there is none.
std::string assign(TrainOptions& options, std::string_view name,
                   const std::vector<std::string>& words, std::string& note);

/// The value as text: "500000000", "bf16", "a.bin b.bin"; "" for an unset path.
std::string text_of(const OptionField& field);

}  // namespace strata::train
