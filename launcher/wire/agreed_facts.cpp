#include "launcher/wire/agreed_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

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
                                 : fmt::format("argument {}", i);
    return refusal_of([&](const auto& words) {
      return fmt::format(
          "its ranks would run another command than those of the coordinator: {} is {} {} and {} "
          "{}; give all hosts the same",
          what, word(theirs), words.on_them, word(own), words.on_us);
    });
  }
  return {};
}

}  // namespace

std::optional<Refusal> difference(const AgreedFacts& theirs, const AgreedFacts& own) {
  if (theirs.build != own.build)
    return refusal_of([&](const auto& words) {
      return fmt::format("{} has Strata {}, {} {}: install the same everywhere", words.them,
                         theirs.build, words.us, own.build);
    });
  if (auto differs = difference_of_options(theirs.options, own.options)) return differs;
  return difference_of_commands(theirs.command, own.command);
}

}  // namespace strata::launcher
