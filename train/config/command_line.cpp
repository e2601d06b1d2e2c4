#include "train/config/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/nearest_name.h"
#include "machine/hardware_override.h"
#include "train/config/flag_table.h"
#include "train/config/flag_translations.h"
#include "train/config/json_words.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

/// The word that CLI11 stores for a flag without a value; nobody types it.
constexpr std::string_view kNoValue = "\n";

/// A flag as CLI11 knows it.
struct Entry {
  const FlagRow* row;
  std::string name;  ///< name for messages
  CLI::Option* option;
};

/// Lets CLI11 split the words among the flags; this file decides what they mean.
struct Splitter {
  CLI::App app;
  std::vector<Entry> entries;  ///< flags that the command line may hold

  explicit Splitter(const std::set<std::string, std::less<>>& typed) {
    app.set_help_flag();
    app.allow_extras();
    for (const FlagRow& row : flag_table()) {
      if (row.use != FlagUse::ignored && row.use != FlagUse::refused) {
        add(row, spellings_of(row), typed);
        continue;
      }
      // Flags that set nothing share a row if one text fits all; each gets an entry of its own.
      std::set<std::string> known;
      for (const std::string_view spelling : listed(row.spellings)) {
        FlagRow alone = row;
        alone.spellings = spelling;
        const std::vector<std::string> spellings = spellings_of(alone);
        if (!known.contains(spellings.back())) add(row, spellings, typed);
        known.insert(spellings.begin(), spellings.end());
      }
    }
  }

 private:
  void add(const FlagRow& row, const std::vector<std::string>& spellings,
           const std::set<std::string, std::less<>>& typed) {
    if (std::ranges::none_of(spellings, [&](const auto& word) { return typed.contains(word); }))
      return;
    CLI::Option* option = app.add_option(fmt::format("{}", fmt::join(spellings, ",")));
    // CLI11 must not stop at a flag with too few words, so that all problems are reported together.
    option->expected(0, row.most_words)->default_str(std::string(kNoValue));
    // The last of --zero 1 --zero 3 counts, since scripts append what they want to override.
    if (row.most_words == 1) option->take_last();
    entries.push_back({&row, spellings.front(), option});
  }
};

/// The words that may be flags: "--steps" for "--steps=3".
std::set<std::string, std::less<>> typed_flags(int argc, const char* const* argv) {
  std::set<std::string, std::less<>> flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with('-')) flags.emplace(word.substr(0, word.find('=')));
  }
  return flags;
}

/// Flags about ranks, their hosts and their lives, which only mlaunch can obey.
constexpr std::string_view kOfMlaunch =
    "-np|-n|--np|--num-gpus|--num_gpus|--nproc-per-node|--nproc_per_node|--num-processes|"
    "--num_processes|--nnodes|--num-nodes|--num_nodes|--node-rank|--node_rank|--log-dir|--log_dir|"
    "--hang-timeout|--hang_timeout|--max-restarts|--max_restarts";

std::string help_of(const FlagsOf& flags_of) {
  return " (" + flags_of.program + " --help lists the flags)";
}

std::string unknown(const std::string& word, const FlagsOf& flags_of) {
  std::vector<std::string> known = flags_of.own;
  for (const FlagRow& row : flag_table()) {
    // Ignored and refused flags are not suggested: they do not help anybody.
    if (row.use == FlagUse::ignored || row.use == FlagUse::refused) continue;
    for (const std::string_view spelling : listed(row.spellings)) known.emplace_back(spelling);
  }
  const bool flag = word.starts_with('-');
  if (is_one_of(word.substr(0, word.find('=')), kOfMlaunch))
    return word + " is mlaunch's, before the program's name: mlaunch -np N train ...";
  return (flag ? "unknown flag " : "unexpected argument ") + word +
         (flag ? suggestion(word.substr(0, word.find('=')), {known.begin(), known.end()}) : "") +
         help_of(flags_of);
}

/// Reports words that belong to no flag, except those after an unknown flag, which are its values.
void report_unknown(const std::vector<std::string>& words, const FlagsOf& flags_of,
                    std::vector<std::string>& problems) {
  bool after_flag = false;
  for (const std::string& word : words) {
    const bool flag = word.starts_with('-');
    if (flag || !after_flag) problems.push_back(unknown(word, flags_of));
    after_flag = after_flag || flag;
  }
}

/// Splits words at commas: "a,b" "c" becomes a b c.
std::vector<std::string> split_at_commas(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const std::string& word : words)
    for (const std::string_view part : listed(word))
      if (!part.empty()) parts.emplace_back(part);
  return parts;
}

void add_option(const FlagRow& row, std::vector<std::string> words, ParsedCommandLine& parsed) {
  const std::string flag(first_spelling(row));
  if (row.comma_separated) words = split_at_commas(words);
  if (words.empty() && row.least_words == 0) words = {"true"};
  const std::vector<std::string_view> targets = listed(row.target, '+');
  for (std::size_t i = 0; i < targets.size(); ++i) {
    // A single word sets both options of a pair.
    const bool pair = targets.size() > 1;
    set_option(std::string(targets[i]),
               pair ? std::vector{words[std::min(i, words.size() - 1)]} : words, flag, parsed);
  }
}

/// Refuses a list of machines, which `plan` takes.
std::string one_machine(const std::string& text) {
  const std::size_t machines = machine::split_hardware_list(text).size();
  if (machines > 1)
    throw InvalidArgument(
        fmt::format("--hardware {}: train plans for one machine, and these are {}; plan --hardware "
                    "{} plans for each",
                    text, machines, text));
  return text;
}

void add_control(const FlagRow& row, const std::vector<std::string>& words,
                 ParsedCommandLine& parsed) {
  const std::string_view flag = first_spelling(row);
  if (flag == "--help") {
    parsed.action = ParsedCommandLine::Action::help;
  } else if (flag == "--version") {
    parsed.action = ParsedCommandLine::Action::version;
  } else if (flag == "--strict-config") {
    parsed.strict = true;
  } else if (flag == "--world-size") {
    double world = 0;
    if (!parse_number(words[0], world) || world < 1 || world > 1e6 || world != int(world)) {
      throw InvalidArgument("--world-size: found '" + words[0] +
                            "', expected a whole number from 1");
    }
    parsed.assumed_world = static_cast<int>(world);
  } else if (flag == "--hardware") {
    parsed.hardware = one_machine(words[0]);
  } else if (flag == "--check-config") {
    parsed.action = ParsedCommandLine::Action::check_config;
    parsed.config = words[0];
  } else if (flag == "--initial-loss-scale") {
    take_initial_loss_scale(words[0], parsed);
  } else if (flag == "--fsdp") {
    take_fsdp(words, parsed);
  } else if (flag == "--lr_scheduler_kwargs") {
    take_scheduler_arguments(words[0], parsed);
  } else if (!words.empty() && words[0].empty()) {
    throw InvalidArgument(std::string(flag) + ": found '', expected the name of a file");
  } else if (!words.empty()) {
    parsed.config = words[0];  // --deepspeed alone does nothing, as in DeepSpeed
  }
}

/// Handles a switch such as --bf16 or --bf16 true. --bf16 false asks for nothing, which a note
/// says: a file or a stored model may still choose the type.
void add_fixed(const FlagRow& row, const std::vector<std::string>& words,
               ParsedCommandLine& parsed) {
  TrainOptions unused;
  const std::string flag(first_spelling(row));
  std::string note;
  const std::string wrong = words.empty() ? "" : assign(unused, "shuffle", words, note);
  if (!wrong.empty()) throw InvalidArgument(flag + ": " + wrong);
  if (words.empty() || unused.shuffle)
    add_option(row, {std::string(row.word)}, parsed);
  else
    parsed.notes.push_back(
        flag + " " + words[0] +
        ": asks for nothing, the file or the model chooses; to overrule them give " +
        (row.target == "dtype" ? "--dtype fp32" : flag_of(listed(row.target, '+')[0])));
}

/// True if a flag that is not obeyed asks for nothing. A flag without words says "true".
bool is_inert(const FlagRow& row, const std::vector<std::string>& words) {
  if (words.empty()) return is_one_of("true", row.inert);
  return !row.inert.empty() &&
         std::ranges::all_of(words, [&](const auto& word) { return is_one_of(word, row.inert); });
}

void add(const Entry& entry, const std::vector<std::string>& words, ParsedCommandLine& parsed) {
  const FlagRow& row = *entry.row;
  switch (row.use) {
    case FlagUse::option:
      return add_option(row, words, parsed);
    case FlagUse::fixed:
      return add_fixed(row, words, parsed);
    case FlagUse::control:
      return add_control(row, words, parsed);
    case FlagUse::ignored:
      if (!is_inert(row, words))
        parsed.notes.push_back(entry.name + ": accepted, unused: " + std::string(row.word));
      return;
    case FlagUse::refused:
      if (is_inert(row, words)) return;
      throw InvalidArgument(entry.name + (is_inert(row, {}) ? " " + words[0] : "") +
                            " is not supported: " + std::string(row.word));
  }
}

/// Reports values of the wrong kind or range.
void check_values(const ParsedCommandLine& parsed, std::vector<std::string>& problems) {
  TrainOptions scratch;
  for (const auto& [name, given] : parsed.settings) {
    std::string note;
    const std::string wrong = assign(scratch, name, given.words, note);
    if (!wrong.empty()) problems.push_back(given.where + ": " + wrong);
  }
}

/// Returns a flag's words that count. Throws InvalidArgument if there are too few.
std::vector<std::string> words_given_to(const Entry& entry, std::vector<std::string>& notes) {
  std::vector<std::string> words = entry.option->results();
  // CLI11 keeps the words of each occurrence; only the last occurrence counts.
  const auto most = static_cast<std::size_t>(entry.row->most_words);
  if (words.size() > most) {
    const std::string first = words.front();
    words.erase(words.begin(), words.end() - entry.row->most_words);
    if (words.front() != first && words.front() != kNoValue && first != kNoValue)
      notes.push_back(fmt::format("{}: given as {} and as {}, the last one counts",
                                  first_spelling(*entry.row), first, words.front()));
  }
  std::erase(words, kNoValue);
  const int least = entry.row->least_words;
  if (words.size() >= static_cast<std::size_t>(least)) return words;
  const bool has_comma = !words.empty() && words.front().find(',') != std::string::npos;
  throw InvalidArgument(fmt::format("{} needs {}{}", entry.name,
                                    least == 1 ? "a value" : fmt::format("{} values", least),
                                    has_comma ? ", separated by a blank, not by a comma" : ""));
}

constexpr std::size_t kHelpColumn = 36;
constexpr std::size_t kHelpWidth = 100;

/// Appends `line`, then the words of `meaning`, wrapped under the help column.
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

ParsedCommandLine parse_train_command_line(int argc, const char* const* argv,
                                           const FlagsOf& flags_of) {
  Splitter splitter(typed_flags(argc, argv));
  try {
    splitter.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw InvalidArgument(error.what() + help_of(flags_of));
  }
  ParsedCommandLine parsed;
  std::vector<std::string> problems;
  report_unknown(splitter.app.remaining(), flags_of, problems);
  for (const Entry& entry : splitter.entries) {
    try {
      add(entry, words_given_to(entry, parsed.notes), parsed);
    } catch (const InvalidArgument& error) {
      problems.emplace_back(error.what());
    }
  }
  check_values(parsed, problems);
  if (!problems.empty()) throw InvalidArgument(joined(problems, "\n"));
  return parsed;
}

std::string train_help() {
  TrainOptions defaults;
  const std::vector<OptionField> fields = option_fields(defaults);
  std::string text = "usage: train [flags]\n";
  for (const FlagRow& row : flag_table()) {
    if (row.use == FlagUse::ignored || row.use == FlagUse::refused) continue;
    for (const FlagGroup& group : flag_groups())
      if (group.first == first_spelling(row)) text += fmt::format("\n{}:\n", group.title);
    std::string line = "  " + std::string(first_spelling(row)) + ' ' + value_name_of(row);
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
