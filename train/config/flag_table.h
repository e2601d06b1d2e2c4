// Lists every flag of `train` with the spellings of Hugging Face and DeepSpeed: flags of options
// (option_fields.h), those that set several options or none, and those that have no effect.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

enum class FlagUse {
  option,   ///< sets the option `target` ("a+b": a pair)
  fixed,    ///< a switch: "true" sets the option `target` to `word`
  control,  ///< about the command line itself; command_line.cpp handles it
  ignored,  ///< accepted with the note `word`, unless its words are `inert`
  refused,  ///< refused unless its words are `inert`: `word` says what to do
};

struct FlagRow {
  /// List such as "--learning-rate,--lr", the first for messages; each works with '-' and '_'.
  std::string_view spellings;
  FlagUse use = FlagUse::option;
  std::string_view target = "";
  int least_words = 1;
  int most_words = 1;                ///< kAnyNumber: all that follow
  std::string_view value_name = "";  ///< "": from the type of the option
  std::string_view word = "";
  std::string_view help = "";  ///< "": the option's meaning
  bool comma_separated = false;
  std::string_view inert = "";  ///< words that ask for nothing, separated by '|'; no word is "true"
};

inline constexpr int kAnyNumber = 1 << 20;

std::span<const FlagRow> flag_table();

/// Splits a list such as "--learning-rate,--lr", or the pair of options "a+b".
std::vector<std::string_view> listed(std::string_view list, char between = ',');

/// The spelling for messages: "--learning-rate".
std::string_view first_spelling(const FlagRow& row);

/// Every spelling of a row, with '-' and with '_'.
std::vector<std::string> spellings_of(const FlagRow& row);

/// The name of the value in --help: "N", "cpu|nvme".
std::string value_name_of(const FlagRow& row);

/// The flag that sets an option, as advice names it: "--threads N".
std::string flag_of(std::string_view option);

/// Flags that --help shows together: from `first` on, in the order of the table.
struct FlagGroup {
  std::string_view first;  ///< the first spelling of its first flag
  std::string_view title;
};
std::span<const FlagGroup> flag_groups();

}  // namespace strata::train
