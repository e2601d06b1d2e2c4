// Every flag of `train`, with the spellings of Hugging Face and DeepSpeed that mean the same: those
// of option_fields.h, those that say several things or what no option is, those that set nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

enum class FlagUse {
  option,   ///< sets the option `target` ("a+b": a pair)
  fixed,    ///< a switch: "true" sets the option `target` to `word`
  control,  ///< about the command line itself: command_line.cpp knows it
  ignored,  ///< accepted with the note `word`, unless what follows is `inert`
  refused,  ///< known and not available, unless what follows is `inert`: `word` says what instead
};

struct FlagRow {
  /// "--learning-rate,--lr"; the first one is shown. Each is known with '-' and with '_' inside.
  std::string_view spellings;
  FlagUse use = FlagUse::option;
  std::string_view target = "";
  int least_words = 1;
  int most_words = 1;                ///< kAnyNumber: as many as follow
  std::string_view value_name = "";  ///< "": what the type of the option says
  std::string_view word = "";
  std::string_view help = "";  ///< "": the meaning of the option
  bool comma_separated = false;
  std::string_view inert = "";  ///< words that ask for nothing, separated by '|'; none is "true"
};

inline constexpr int kAnyNumber = 1 << 20;

std::span<const FlagRow> flag_table();

/// The parts of a list such as "--learning-rate,--lr", or of the pair of options "a+b".
std::vector<std::string_view> listed(std::string_view list, char between = ',');

/// "--learning-rate", which is shown.
std::string_view first_spelling(const FlagRow& row);

/// Every spelling of a row.
std::vector<std::string> spellings_of(const FlagRow& row);

/// What --help says after the flag: "N", "cpu|nvme".
std::string value_name_of(const FlagRow& row);

/// The flag that sets an option, for advice: "--threads N".
std::string flag_of(std::string_view option);

/// What --help shows together: the flags from one on, in the order of the table.
struct FlagGroup {
  std::string_view first;  ///< flag, by its first spelling
  std::string_view title;
};
std::span<const FlagGroup> flag_groups();

}  // namespace strata::train
