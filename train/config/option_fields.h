// The options of `train`: a row says all there is to say of one (option_rows_*.cpp), a field is the
// row with its place in one TrainOptions. Flags, JSON keys, help, printing, manifests and
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

/// A field of TrainOptions; std::uint8_t: an enumeration, whose words the row lists.
using OptionTarget =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                 SaveInterval*, StepRange*, std::uint8_t*>;
using OptionPlace = OptionTarget (*)(TrainOptions&);

/// A word of an enumeration.
struct Choice {
  template <typename E>
  constexpr Choice(E choice, std::string_view word, bool offered = true)
      : value(static_cast<std::uint8_t>(choice)), name(word), is_offered(offered) {}

  std::uint8_t value;
  std::string_view name;  ///< the first name of a value is the one that is printed
  bool is_offered;        ///< false: what --print-config says where nobody said anything
};

/// How the words of a whole number are read.
enum class NumberKind {
  whole,
  count,  ///< a fraction is rounded down with a note (0.9 * hidden^2 of some writers)
  most,   ///< what is beyond `highest` is `highest`: 1e20 steps between lines are as good as never
  bytes,  ///< with a unit or without (byte_size.h)
};

/// What a number may be.
struct Range {
  double lowest = 0;
  double highest = 1e300;
  NumberKind kind = NumberKind::whole;
  OptionPlace part = nullptr;  ///< of intervals: takes what is below one, a part of all steps
};

/// The flag that sets an option.
struct Spelling {
  std::string_view spellings = "";   ///< as in FlagRow
  std::string_view value_name = "";  ///< "": what the type says, such as N or cpu|nvme
  bool comma_separated = false;
};

/// The JSON key that sets an option and nothing else.
struct Key {
  std::string_view path = "";
  std::string_view fallback = "";    ///< DeepSpeed's default
  JsonShape shape = JsonShape::any;  ///< any: what the type says
};

/// Names in --lr_scheduler_kwargs, separated by commas.
struct Argument {
  std::string_view names = "";
};

/// The field of the Plan that the option sets, by which its rules say what is wrong
/// (step/check_plan.h).
struct Decides {
  std::string_view field = "";
};

struct OptionRow {
  /// After name and place follow words and what else there is to say, the meaning last.
  template <typename... Facts>
  constexpr OptionRow(std::string_view option, OptionPlace field, const Facts&... facts)
      : name(option), place(field) {
    (set(facts), ...);
  }

  std::string_view name;  ///< "zero.stage": in messages, --print-config and manifests
  OptionPlace place;
  std::string_view meaning;  ///< in --help and docs/configuration.md
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

/// What the type of an option says of its values.
struct OptionKind {
  JsonShape shape = JsonShape::any;  ///< in JSON
  std::string value_name;            ///< in --help: "N", "cpu|nvme"; "" of texts
  bool is_switch = false;            ///< the flag alone means true
  bool is_list = false;
};
OptionKind kind_of(const OptionRow& row);

/// All rows in the order of --help.
const std::vector<OptionRow>& option_rows();

struct OptionField : OptionRow {
  OptionTarget target;
  double* part_target = nullptr;  ///< of intervals: where a part of all steps goes
};

/// All fields of `options`, in the order of --print-config, in which TrainOptions declares them.
std::vector<OptionField> option_fields(TrainOptions& options);

/// nullptr: no field of that name.
const OptionField* find_field(const std::vector<OptionField>& fields, std::string_view name);

/// "expected a number from 0 to 3", `kind` being "a number".
std::string range_text(const OptionField& field, std::string_view kind);

/// Sets the field. Returns "" or "found X, expected Y". `note` is filled when a value was bent.
std::string assign(const OptionField& field, const std::vector<std::string>& words,
                   std::string& note);

/// The same for the option of that name. Aborts where there is none.
std::string assign(TrainOptions& options, std::string_view name,
                   const std::vector<std::string>& words, std::string& note);

/// The value as text: "500000000", "bf16", "a.bin b.bin", "" for an unset path.
std::string text_of(const OptionField& field);

}  // namespace strata::train
