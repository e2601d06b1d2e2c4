#include "launcher/wire/agreed_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>

namespace strata::launcher {
namespace {

using Option = AgreedFacts::Option;

std::string value_in(const std::vector<Option>& options, const std::string& name) {
  const auto found = std::ranges::find(options, name, &Option::name);
  return found == options.end() ? "" : found->value;
}

std::optional<Refusal> difference_of_options(const std::vector<Option>& theirs,
                                             const std::vector<Option>& own) {
  std::vector<Option> all = own;
  all.insert(all.end(), theirs.begin(), theirs.end());
  for (const auto& [name, unused] : all) {
    const std::string a = value_in(theirs, name), b = value_in(own, name);
    if (a == b) continue;
    return refusal_of([&, &name = name](const auto& words) {
      return fmt::format("{} was told {} {}, {} {}: give all of them the same", words.them,
                         a.empty() ? "no" : name, a.empty() ? name : a, words.us,
                         b.empty() ? "none" : b);
    });
  }
  return {};
}

/// Parses lines of a name and a value. Other hosts send them, so anything may come.
std::vector<Option> facts_of_build(std::string_view build) {
  std::vector<Option> facts;
  while (!build.empty()) {
    const std::string_view line = build.substr(0, build.find('\n'));
    build.remove_prefix(std::min(line.size() + 1, build.size()));
    const std::size_t space = std::min(line.find(' '), line.size());
    facts.push_back({std::string(line.substr(0, space)),
                     std::string(line.substr(std::min(space + 1, line.size())))});
  }
  return facts;
}

/// Names all that differs.
std::optional<Refusal> difference_of_builds(std::string_view theirs, std::string_view own) {
  if (theirs == own) return {};
  const std::vector<Option> a = facts_of_build(theirs), b = facts_of_build(own);
  std::set<std::string> names;
  for (const auto* facts : {&a, &b})
    for (const Option& fact : *facts)
      if (value_in(a, fact.name) != value_in(b, fact.name)) names.insert(fact.name);
  return refusal_of([&](const auto& words) {
    std::string text;
    for (const std::string& name : names)
      text += fmt::format("{} has {} {}, {} {}; ", words.them, name, value_in(a, name), words.us,
                          value_in(b, name));
    return text + "install the same Strata everywhere";
  });
}

using Command = std::vector<std::string>;

std::string times(std::ptrdiff_t count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

/// A negative number is the value of an option.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && (word[1] < '0' || word[1] > '9');
}

/// Returns the command with --zero 3 for --zero=3.
Command with_split_options(const Command& command) {
  Command split;
  for (const std::string& word : command) {
    const std::size_t equals = is_option(word) ? word.find('=') : word.npos;
    split.push_back(word.substr(0, equals));
    if (equals != word.npos) split.push_back(word.substr(equals + 1));
  }
  return split;
}

/// Returns --zero where word `i` is the 3 of --zero 3; "": it follows no option.
std::string option_at(const Command& command, std::size_t i) {
  const bool is_value =
      i > 0 && i < command.size() && !is_option(command[i]) && is_option(command[i - 1]);
  return is_value ? command[i - 1] : "";
}

/// Says of an option that one of two commands has more often, where they begin to differ, that it
/// has; "": there is none.
template <typename Words>
std::string uneven_option(const Command& theirs, const Command& own, std::size_t i,
                          const Words& words) {
  for (const Command* command : {&theirs, &own}) {
    if (i >= command->size() || !is_option((*command)[i])) continue;
    const std::string& option = (*command)[i];
    const auto there = std::ranges::count(theirs, option), here = std::ranges::count(own, option);
    if (here == 0)
      return fmt::format("{} is given {} and not {}", option, words.on_them, words.on_us);
    if (there == 0)
      return fmt::format("{} is given {} and not {}", option, words.on_us, words.on_them);
    if (there != here)
      return fmt::format("{} is given {} {} and {} {}", option, times(there), words.on_them,
                         times(here), words.on_us);
  }
  return "";
}

/// Lists each option with the words that follow it, whatever their order; first what comes before
/// all of them.
std::vector<Command> options_with_values(const Command& command) {
  std::vector<Command> parts(1);
  for (const std::string& word : command) {
    if (is_option(word)) parts.emplace_back();
    parts.back().push_back(word);
  }
  std::sort(parts.begin() + 1, parts.end());
  return parts;
}

/// Says where two commands begin to differ that have the same options in another order; "": they
/// differ in more.
template <typename Words>
std::string other_order(const Command& theirs, const Command& own, std::size_t i,
                        const Words& words) {
  if (options_with_values(theirs) != options_with_values(own)) return "";
  return fmt::format("its options are the same in another order, first '{}' {} and '{}' {}",
                     theirs[i], words.on_them, own[i], words.on_us);
}

/// Says of commands that mean the same where one has --zero=3 and the other --zero 3.
template <typename Words>
std::string other_writing(const Command& theirs, const Command& own, const Words& words) {
  std::size_t i = 0;  // the words differ in some place
  while (theirs[i] == own[i]) ++i;
  const auto written = [i](const Command& command) {
    const bool is_split = command[i].find('=') == std::string::npos;
    return command[i] + (is_split ? " " + command[i + 1] : "");
  };
  return fmt::format("an option is written '{}' {} and '{}' {}", written(theirs), words.on_them,
                     written(own), words.on_us);
}

/// `differs`: where the ranks' commands do, in the words of one of the two hosts.
template <typename Differs>
Refusal refusal_of_command(const Differs& differs) {
  return refusal_of([&](const auto& words) {
    return fmt::format(
        "its ranks would run another command than those of the coordinator: {}; give all hosts the "
        "same",
        differs(words));
  });
}

/// The options of the commands are split from their values.
std::optional<Refusal> difference_of_words(const Command& theirs, const Command& own) {
  for (std::size_t i = 0; i < std::max(theirs.size(), own.size()); ++i) {
    const auto word = [i](const Command& command) {
      return i < command.size() ? "'" + command[i] + "'" : std::string("nothing");
    };
    if (word(theirs) == word(own)) continue;
    const std::string option = option_at(theirs, i);
    const std::string what = i == 0 ? "the program"
                             : !option.empty() && option == option_at(own, i)
                                 ? option
                                 : fmt::format("what follows '{}'", own[i - 1]);
    return refusal_of_command([&](const auto& words) {
      std::string differs = uneven_option(theirs, own, i, words);
      if (differs.empty()) differs = other_order(theirs, own, i, words);
      if (differs.empty())
        differs = fmt::format("{} is {} {} and {} {}", what, word(theirs), words.on_them, word(own),
                              words.on_us);
      return differs;
    });
  }
  return {};
}

std::optional<Refusal> difference_of_commands(const Command& theirs, const Command& own) {
  if (theirs == own) return {};
  if (auto differs = difference_of_words(with_split_options(theirs), with_split_options(own)))
    return differs;
  return refusal_of_command([&](const auto& words) { return other_writing(theirs, own, words); });
}

}  // namespace

std::optional<Refusal> difference(const AgreedFacts& theirs, const AgreedFacts& own) {
  if (auto differs = difference_of_builds(theirs.build, own.build)) return differs;
  if (auto differs = difference_of_options(theirs.options, own.options)) return differs;
  return difference_of_commands(theirs.command, own.command);
}

}  // namespace strata::launcher
