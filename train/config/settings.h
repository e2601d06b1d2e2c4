// The words of a file or a command line by option name, before anything is decided.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace strata::train {

/// The source of a value; later ones win.
enum class Origin { default_value, stored_model, automatic, planned, file, command_line };
std::string_view name_of(Origin origin);

struct Given {
  std::vector<std::string> words;  ///< numbers and booleans as text
  bool automatic = false;          ///< the word is "auto"
  std::string where;               ///< "ds_config.json:12: optimizer.params.lr" or "--lr"
  bool auto_is_default = false;    ///< DeepSpeed drops an "auto" here that nobody fills
};

/// Given words by option name (option_fields.cpp); facts that are no option by JSON path.
using Settings = std::map<std::string, Given, std::less<>>;

/// Messages about a configuration. Problems stop the run, all reported at once.
struct Findings {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::vector<std::string> problems;
};

/// Reads the whole of `text` as a finite number; returns false if it is none.
bool parse_number(std::string_view text, double& number);

/// Joins the parts with `between`: "a b".
std::string joined(const std::vector<std::string>& parts, std::string_view between);

/// True if both mean the same: "5e8" and "500000000", or "AdamW" and "adamw".
bool same_word(std::string_view a, std::string_view b);

}  // namespace strata::train
