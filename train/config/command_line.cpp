#include "train/config/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>

#include "core/error.h"
#include "train/config/flag_table.h"
#include "train/config/nearest_name.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

std::string_view first_spelling(const FlagRow& row) {
  return row.spellings.substr(0, row.spellings.find(','));
}

std::vector<std::string_view> spellings_of(const FlagRow& row) {
  std::vector<std::string_view> spellings;
  std::string_view rest = row.spellings;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    spellings.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return spellings;
}

/// CLI11 splits the words among the flags; what they mean is decided here.
struct Splitter {
  CLI::App app;
  std::map<std::string_view, CLI::Option*> options;  ///< by first spelling

  Splitter() {
    app.set_help_flag();
    app.allow_extras();
    for (const FlagRow& row : flag_table()) {
      CLI::Option* option = app.add_option(std::string(row.spellings));
      option->expected(row.least_words, row.most_words);
      // --zero 1 --zero 3: scripts append what they want to override.
      if (row.most_words == 1) option->take_last();
      options[first_spelling(row)] = option;
    }
  }
};

[[noreturn]] void refuse_unknown(const std::string& word) {
  std::vector<std::string_view> known;
  for (const FlagRow& row : flag_table()) {
    for (const std::string_view spelling : spellings_of(row)) known.push_back(spelling);
  }
  const bool flag = word.starts_with('-');
  throw InvalidArgument((flag ? "unknown flag " : "unexpected argument ") + word +
                        (flag ? suggestion(word.substr(0, word.find('=')), known) : "") +
                        " (train --help lists the flags)");
}

/// "a,b" "c" as a b c.
std::vector<std::string> split_at_commas(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const std::string& word : words) {
    std::istringstream in(word);
    for (std::string part; std::getline(in, part, ',');) {
      if (!part.empty()) parts.push_back(part);
    }
  }
  return parts;
}

void add_option(const FlagRow& row, std::vector<std::string> words, ParsedCommandLine& parsed) {
  const std::string flag(first_spelling(row));
  if (row.comma_separated) words = split_at_commas(words);
  if (words.empty() && row.least_words == 0) words = {"true"};
  std::string_view target = row.target;
  while (!target.empty()) {
    const std::size_t plus = target.find('+');
    const bool pair = plus != std::string_view::npos;
    const std::string option(target.substr(0, plus));
    const std::vector<std::string> own = pair ? std::vector{words[0]} : words;
    const auto [old, added] = parsed.settings.emplace(option, Given{own, false, flag});
    if (!added && old->second.words != own) {
      throw InvalidArgument(flag + " " + own[0] + " contradicts " + old->second.where + " " +
                            old->second.words[0]);
    }
    if (pair) words.erase(words.begin());
    target = pair ? target.substr(plus + 1) : "";
  }
}

void add_control(const FlagRow& row, const std::vector<std::string>& words,
                 ParsedCommandLine& parsed) {
  const std::string_view flag = first_spelling(row);
  if (flag == "--help") {
    parsed.action = ParsedCommandLine::Action::help;
  } else if (flag == "--strict-config") {
    parsed.strict = true;
  } else if (flag == "--world-size") {
    double world = 0;
    if (!parse_number(words[0], world) || world < 1 || world > 1e6 || world != int(world)) {
      throw InvalidArgument("--world-size: found '" + words[0] +
                            "', expected a whole number from 1");
    }
    parsed.assumed_world = static_cast<int>(world);
  } else if (flag == "--check-config") {
    parsed.action = ParsedCommandLine::Action::check_config;
    parsed.config = words[0];
  } else if (!words.empty()) {
    parsed.config = words[0];  // a lone --deepspeed means nothing, as in DeepSpeed
  }
}

/// --bf16, --bf16 true; --bf16 false asks for nothing.
void add_fixed(const FlagRow& row, const std::vector<std::string>& words,
               ParsedCommandLine& parsed) {
  TrainOptions unused;
  OptionField flag{first_spelling(row), "", &unused.shuffle};
  std::string note;
  const std::string wrong = words.empty() ? "" : assign(flag, words, note);
  if (!wrong.empty()) throw InvalidArgument(std::string(flag.name) + ": " + wrong);
  if (words.empty() || unused.shuffle) add_option(row, {std::string(row.word)}, parsed);
}

void add(const FlagRow& row, const std::vector<std::string>& words, ParsedCommandLine& parsed) {
  const std::string flag(first_spelling(row));
  switch (row.use) {
    case FlagUse::option:
      return add_option(row, words, parsed);
    case FlagUse::fixed:
      return add_fixed(row, words, parsed);
    case FlagUse::control:
      return add_control(row, words, parsed);
    case FlagUse::ignored:
      parsed.notes.push_back(flag + ": accepted, unused: " + std::string(row.word));
      return;
    case FlagUse::refused:
      throw InvalidArgument(flag + " is not supported: " + std::string(row.word));
  }
}

/// Values of the wrong kind or range, all of them.
void check_values(const ParsedCommandLine& parsed) {
  TrainOptions scratch;
  const std::vector<OptionField> fields = option_fields(scratch);
  std::string problems;
  for (const auto& [name, given] : parsed.settings) {
    std::string note;
    const std::string wrong = assign(*find_field(fields, name), given.words, note);
    if (!wrong.empty()) problems += (problems.empty() ? "" : "\n") + given.where + ": " + wrong;
  }
  if (!problems.empty()) throw InvalidArgument(problems);
}

constexpr std::size_t kHelpColumn = 36;
constexpr std::size_t kHelpWidth = 100;

/// Appends `line` with the words of `meaning` after it, continued under the help column.
void add_wrapped(std::string line, const std::string& meaning, std::string& text) {
  std::istringstream words(meaning);
  const char* space = "";
  for (std::string word; words >> word; space = " ") {
    if (line.size() + 1 + word.size() > kHelpWidth) {
      text += line + '\n';
      line.assign(kHelpColumn, ' ');
      space = "";
    }
    line += space + word;
  }
  text += line + '\n';
}

}  // namespace

ParsedCommandLine parse_train_command_line(int argc, const char* const* argv) {
  Splitter splitter;
  try {
    splitter.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw InvalidArgument(std::string(error.what()) + " (train --help lists the flags)");
  }
  const std::vector<std::string> extras = splitter.app.remaining();
  if (!extras.empty()) refuse_unknown(extras.front());
  ParsedCommandLine parsed;
  for (const FlagRow& row : flag_table()) {
    const CLI::Option* option = splitter.options.at(first_spelling(row));
    if (option->count() == 0) continue;
    std::vector<std::string> words = option->results();
    // A flag given again replaces what it said before; CLI11 keeps both.
    const auto most = static_cast<std::size_t>(row.most_words);
    if (words.size() > most) words.erase(words.begin(), words.end() - row.most_words);
    // What CLI11 stores for a flag without a value.
    if (row.least_words == 0) std::erase(words, std::string());
    add(row, words, parsed);
  }
  check_values(parsed);
  return parsed;
}

std::string train_help() {
  TrainOptions defaults;
  const std::vector<OptionField> fields = option_fields(defaults);
  std::string text = "usage: train [flags]\n\n";
  for (const FlagRow& row : flag_table()) {
    if (row.use == FlagUse::ignored || row.use == FlagUse::refused) continue;
    std::string line = "  " + std::string(first_spelling(row)) + ' ' + std::string(row.value_name);
    line.resize(std::max(line.size() + 1, kHelpColumn), ' ');
    const OptionField* field = find_field(fields, row.target);
    std::string meaning(row.help.empty() && field != nullptr ? field->meaning : row.help);
    const std::string fallback = field != nullptr ? text_of(*field) : "";
    if (!fallback.empty() && fallback != "false" && row.use == FlagUse::option) {
      meaning += " [" + fallback + "]";
    }
    add_wrapped(line, meaning, text);
  }
  return text +
         "\nFlags win over the file. docs/configuration.md lists other spellings and every "
         "JSON key.\n";
}

std::string requested_model(const ParsedCommandLine& command_line) {
  const auto it = command_line.settings.find("model");
  return it == command_line.settings.end() ? TrainOptions().model : it->second.words[0];
}

}  // namespace strata::train
