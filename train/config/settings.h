// What a file or a command line said, before anything is decided: words by option name.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

/// Where a value comes from, weakest first.
enum class Origin { default_value, stored_model, automatic, file, command_line };
std::string_view name_of(Origin origin);

struct Given {
  std::vector<std::string> words;  ///< numbers and booleans as text
  bool automatic = false;          ///< "auto"
  std::string where;               ///< "ds_config.json:12: optimizer.params.lr" or "--lr"
  bool auto_is_default = false;  ///< sections in which DeepSpeed drops an "auto" that nobody fills
};

/// What is given, by option name (option_fields.cpp); facts that are no option by their JSON path.
using Settings = std::map<std::string, Given, std::less<>>;

/// What is said about a configuration. Problems stop the run, all of them at once.
struct Findings {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::vector<std::string> problems;
};

/// The whole of `text` as a finite number.
bool parse_number(std::string_view text, double& number);

/// "a b" of a and b, where a space stands between.
std::string joined(const std::vector<std::string>& parts, std::string_view between);

/// "5e8" and "500000000" are the same, so are "AdamW" and "adamw".
bool same_word(std::string_view a, std::string_view b);

}  // namespace strata::train
