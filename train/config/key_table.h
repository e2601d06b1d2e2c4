// Every JSON key that is known: DeepSpeed's and those under "strata", with what becomes of each:
// those that rows of options name (option_fields.h) among the others (foreign_keys.h). The reader
// (deepspeed_json.cpp) walks the file along this table; docs/configuration.md is checked against
// it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace strata::train {

/// What a value must look like.
enum class JsonShape {
  flag,
  number,
  text,
  list,     ///< of numbers
  texts,    ///< an array of strings, or one
  size,     ///< a number of bytes, or a string with a unit such as "24GB"
  section,  ///< an object that is walked into
  any,      ///< not looked into
};

enum class Support {
  obeyed,   ///< sets the option `target`
  fact,     ///< kept by its path, for interpret_facts or resolve
  noted,    ///< accepted; a note says why it does nothing here, unless the value is `inert`
  refused,  ///< stops the run, unless the value is `inert`
  silent,   ///< accepted without a word
  alias,    ///< another spelling of the key `target`
  renamed,  ///< a deprecated spelling of the key `target`: accepted with a note
};
std::string_view name_of(Support support);

struct KeyRow {
  std::string_view path = "";  ///< "fp16.enabled"; a last component "*" stands for any other key
  JsonShape shape = JsonShape::any;
  Support support = Support::silent;
  std::string_view target = "";    ///< option ("optimizer.beta1+optimizer.beta2" for a pair) or key
  std::string_view inert = "";     ///< values that say nothing, separated by '|'
  std::string_view text = "";      ///< why it does nothing, or what is supported instead
  std::string_view fallback = "";  ///< DeepSpeed's default
  /// The member that switches a section on ("": being there; "*": any "enabled": true
  /// inside).
  std::string_view on_switch = "";
  bool has_switch = false;
};

/// All rows, parents before children.
std::span<const KeyRow> key_table();

/// The row of a path, by exact name and then by "*". nullptr: unknown.
const KeyRow* find_key(std::string_view path);

/// Names of the keys that may stand in the section `parent` ("" for the top level).
std::vector<std::string_view> keys_of_section(std::string_view parent);

}  // namespace strata::train
