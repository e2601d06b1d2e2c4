// Lists every known JSON key, DeepSpeed's and those under "strata", and what becomes of each: keys
// of options (option_fields.h) among all others (foreign_keys.h). The reader (deepspeed_json.cpp)
// walks the file along this table; a test compares docs/configuration.md with it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace strata::train {

/// The form that a value must have.
enum class JsonShape {
  flag,
  number,
  text,
  list,     ///< an array of numbers
  texts,    ///< an array of strings, or one string
  size,     ///< a number of bytes, or a string with a unit such as "24GB"
  tree,     ///< an array of objects; its word is its text
  section,  ///< an object whose members have rows of their own
  any,      ///< not examined
};

enum class Support {
  obeyed,   ///< sets the option `target`
  fact,     ///< kept by its path for interpret_facts or resolve
  noted,    ///< accepted; a note says why it has no effect, unless `inert`
  refused,  ///< stops the run, unless `inert`
  silent,   ///< accepted without a note
  alias,    ///< another spelling of the key `target`
  renamed,  ///< a deprecated spelling of the key `target`: accepted with a note
};
std::string_view name_of(Support support);

struct KeyRow {
  std::string_view path = "";  ///< "fp16.enabled"; a last component "*" stands for any other key
  JsonShape shape = JsonShape::any;
  Support support = Support::silent;
  std::string_view target = "";    ///< option ("optimizer.beta1+optimizer.beta2" for a pair) or key
  std::string_view inert = "";     ///< values that ask for nothing, separated by '|'
  std::string_view text = "";      ///< why it has no effect, or what is supported instead
  std::string_view fallback = "";  ///< DeepSpeed's default
  /// The member that switches a section on; "": its presence; "*": any "enabled": true inside.
  std::string_view on_switch = "";
  bool has_switch = false;
};

/// All rows, parents before children.
std::span<const KeyRow> key_table();

/// The row of a path, by exact name, else by "*"; null if unknown.
const KeyRow* find_key(std::string_view path);

/// Names of the keys allowed in the section `parent` ("" for the top level).
std::vector<std::string_view> keys_of_section(std::string_view parent);

}  // namespace strata::train
