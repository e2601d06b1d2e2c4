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

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// Returns the option that has its value in word `i`: --zero of --zero=3, or of --zero 3. "": none.
std::string option_at(const Command& command, std::size_t i) {
  if (i >= command.size()) return "";
  const std::string& word = command[i];
  if (is_option(word)) return word.substr(0, word.find('=') == word.npos ? 0 : word.find('='));
  const bool is_value = i > 0 && is_option(command[i - 1]) && command[i - 1].find('=') == word.npos;
  return is_value ? command[i - 1] : "";
}

/// Returns --zero for --zero and for --zero=3; "": word `i` is no option.
std::string name_at(const Command& command, std::size_t i) {
  if (i >= command.size() || !is_option(command[i])) return "";
  return command[i].substr(0, command[i].find('='));
}

bool has_option(const Command& command, const std::string& name) {
  for (std::size_t i = 0; i < command.size(); ++i)
    if (name_at(command, i) == name) return true;
  return false;
}

/// Says of an option that only one of two commands has, where they begin to differ, that it has;
/// "": there is none.
template <typename Words>
std::string lone_option(const Command& theirs, const Command& own, std::size_t i,
                        const Words& words) {
  const std::string there = name_at(theirs, i), here = name_at(own, i);
  if (!there.empty() && !has_option(own, there))
    return fmt::format("{} is given {} and not {}", there, words.on_them, words.on_us);
  if (!here.empty() && !has_option(theirs, here))
    return fmt::format("{} is given {} and not {}", here, words.on_us, words.on_them);
  return "";
}

std::optional<Refusal> difference_of_commands(const Command& theirs, const Command& own) {
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
    return refusal_of([&](const auto& words) {
      std::string differs = lone_option(theirs, own, i, words);
      if (differs.empty())
        differs = fmt::format("{} is {} {} and {} {}", what, word(theirs), words.on_them, word(own),
                              words.on_us);
      return fmt::format(
          "its ranks would run another command than those of the coordinator: {}; give all hosts "
          "the same",
          differs);
    });
  }
  return {};
}

}  // namespace

std::optional<Refusal> difference(const AgreedFacts& theirs, const AgreedFacts& own) {
  if (auto differs = difference_of_builds(theirs.build, own.build)) return differs;
  if (auto differs = difference_of_options(theirs.options, own.options)) return differs;
  return difference_of_commands(theirs.command, own.command);
}

}  // namespace strata::launcher
