#include "train/config/reference_page.h"

#include <string_view>
#include <vector>

#include "train/config/flag_table.h"
#include "train/config/key_table.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

/// Text for a table cell, with '|' escaped.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string code(std::string_view text) { return text.empty() ? "" : "`" + cell(text) + "`"; }

/// The options that a key or flag sets.
std::string targets(std::string_view list) {
  std::string text;
  for (const std::string_view option : listed(list, '+'))
    text += (text.empty() ? "" : ", ") + code(option);
  return text;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += text.empty() ? " |" : " " + text + " |";
  return line + "\n";
}

std::string meaning_of(const KeyRow& key, const std::vector<OptionField>& fields) {
  const OptionField* field = find_field(fields, key.target.substr(0, key.target.find('+')));
  switch (key.support) {
    case Support::alias:
    case Support::renamed:
      return "see " + code(key.target);
    case Support::obeyed:
      if (key.shape == JsonShape::section) return cell(key.text);
      return targets(key.target) + (field == nullptr ? "" : ": " + cell(field->meaning));
    case Support::noted:
      return cell(key.text.empty() ? "either value is as good" : key.text);
    default:
      return cell(key.text);
  }
}

std::string support_of(const KeyRow& key) {
  const std::string name(name_of(key.support));
  if (key.support == Support::refused && key.shape == JsonShape::section) return name + " when on";
  if (key.support == Support::refused) return name + " unless " + code(key.inert);
  return name;
}

std::string key_rows(const std::vector<OptionField>& fields) {
  std::string text = row({"key", "what becomes of it", "DeepSpeed's default", "meaning here"}) +
                     row({"---", "---", "---", "---"});
  for (const KeyRow& key : key_table()) {
    const bool shown = key.shape != JsonShape::section || key.has_switch || !key.text.empty();
    if (!shown) continue;
    text += row({code(key.path), support_of(key), code(key.fallback), meaning_of(key, fields)});
  }
  return text;
}

/// Makes "false, no" of "false|no|".
std::string readable(std::string_view words) {
  std::string text;
  for (const char c : words) text += c == '|' ? std::string(", ") : std::string(1, c);
  while (text.ends_with(", ")) text.resize(text.size() - 2);
  return text.starts_with(", ") ? text.substr(2) : text;
}

std::string flag_rows(const std::vector<OptionField>& fields) {
  std::string text =
      row({"flag", "other spellings", "sets", "meaning"}) + row({"---", "---", "---", "---"});
  for (const FlagRow& flag : flag_table()) {
    // Other names in rows of flags that set nothing are flags of their own, not spellings.
    const bool sets = flag.use != FlagUse::ignored && flag.use != FlagUse::refused;
    const std::size_t comma = sets ? flag.spellings.find(',') : std::string_view::npos;
    const std::string_view others =
        comma == std::string_view::npos ? "" : flag.spellings.substr(comma + 1);
    const OptionField* field = find_field(fields, flag.target);
    std::string meaning(flag.help.empty() && field != nullptr ? field->meaning : flag.help);
    if (flag.use == FlagUse::ignored) meaning = "accepted, unused: " + std::string(flag.word);
    if (flag.use == FlagUse::refused) meaning = "refused: " + std::string(flag.word);
    const std::string fine = readable(flag.inert);
    if (flag.use == FlagUse::refused && !fine.empty()) meaning += " (unless " + fine + ")";
    std::string shown(flag.spellings.substr(0, comma));
    if (const std::string value = value_name_of(flag); !value.empty()) shown += " " + value;
    text += row({code(shown), code(others), targets(flag.target), cell(meaning)});
  }
  return text;
}

std::string option_rows(const std::vector<OptionField>& fields) {
  std::string text = row({"option", "default", "meaning"}) + row({"---", "---", "---"});
  for (const OptionField& field : fields) {
    text += row({code(field.name), code(text_of(field)), cell(field.meaning)});
  }
  return text;
}

}  // namespace

std::string configuration_reference() {
  TrainOptions defaults;
  const std::vector<OptionField> fields = option_fields(defaults);
  return "## JSON keys\n\n" + key_rows(fields) + "\n## Flags of train\n\n" + flag_rows(fields) +
         "\n## Options\n\n" + option_rows(fields);
}

}  // namespace strata::train
