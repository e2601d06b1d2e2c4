#include "launcher/views/view_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "core/error.h"
#include "core/integer.h"
#include "core/nearest_name.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

constexpr int kMostWaitSeconds = 86400;
constexpr std::int64_t kMostLines = 1'000'000'000;
/// One word of so many digits is the number of a rank; longer ones, and others, are runs' ids.
constexpr std::size_t kMostRankDigits = 6;

struct ViewOption {
  std::string_view name;
  bool takes_value;
  std::array<std::string_view, 3> commands;  ///< that know it
};

constexpr auto kViewOptions = std::to_array<ViewOption>({
    {"-h", false, {"status", "stop", "logs"}},
    {"--help", false, {"status", "stop", "logs"}},
    {"--json", false, {"status", "logs"}},
    {"--watch", false, {"status"}},
    {"--now", false, {"stop"}},
    {"--wait", true, {"stop"}},
    {"-f", false, {"logs"}},
    {"--follow", false, {"logs"}},
    {"-n", true, {"logs"}},
    {"--tail", true, {"logs"}},
    {"--stdout", false, {"logs"}},
    {"--stderr", false, {"logs"}},
    {"--at", true, {"status", "stop", "logs"}},
    {"--run-secret", true, {"status", "stop", "logs"}},
});

const ViewOption& find_view_option(const std::string& command, const std::string& name,
                                   const std::string& usage) {
  std::vector<std::string_view> known;
  for (const ViewOption& option : kViewOptions) {
    if (std::ranges::find(option.commands, command) == option.commands.end()) continue;
    if (option.name == name) return option;
    known.push_back(option.name);
  }
  throw InvalidArgument("mlaunch " + command + " has no option " + name + suggestion(name, known) +
                        usage + ", or start a program of that name with: mlaunch -- " + command);
}

std::int64_t integer_of(const std::string& name, const std::string& text, std::int64_t most) {
  const auto value = parse_integer(text);
  if (!value || *value < 0 || *value > most)
    throw InvalidArgument(fmt::format("{} {}: expected an integer from 0 to {}", name, text, most));
  return *value;
}

void set(ViewOptions& options, const std::string& name, const std::string& value) {
  if (name == "--wait")
    options.wait = std::chrono::seconds(integer_of(name, value, kMostWaitSeconds));
  else if (name == "-n" || name == "--tail")
    options.tail = static_cast<std::uint64_t>(integer_of(name, value, kMostLines));
  else if (name == "--at")
    std::tie(options.at.address, options.at.port) = parse_host_and_port(name, value);
  else if (value.empty())
    throw InvalidArgument(name + " needs the name of a file");
  else
    options.at.secret = value;
}

void set(ViewOptions& options, const std::string& name) {
  options.show_help |= name == "-h" || name == "--help";
  options.json |= name == "--json";
  options.watch |= name == "--watch";
  options.now |= name == "--now";
  options.follow |= name == "-f" || name == "--follow";
  options.only_output |= name == "--stdout";
  options.only_error |= name == "--stderr";
}

bool is_rank(const std::string& word) {
  return word.size() <= kMostRankDigits &&
         word.find_first_not_of("0123456789") == std::string::npos;
}

void set_words(ViewOptions& options, const std::string& command,
               const std::vector<std::string>& words, const std::string& usage) {
  if (std::ranges::find(words, "") != words.end())
    throw InvalidArgument("the run's id is empty" + usage);
  const bool takes_rank = command == "logs";
  if (words.size() > (takes_rank ? 2U : 1U))
    throw InvalidArgument("one run at a time: " + words[0] + " or " + words[1] + usage);
  if (words.empty()) return;
  const bool ends_with_rank = takes_rank && (words.size() == 2 || is_rank(words[0]));
  if (ends_with_rank) {
    if (!is_rank(words.back()))
      throw InvalidArgument("the number of a rank is expected, not " + words.back() + usage);
    options.rank = static_cast<int>(*parse_integer(words.back()));
  }
  if (!ends_with_rank || words.size() == 2) options.run = words[0];
}

void check(const ViewOptions& options) {
  if (options.show_help) return;
  if (options.only_output && options.only_error)
    throw InvalidArgument("--stdout and --stderr: give one of them, or none for both");
  if (options.is_elsewhere() && options.at.secret.empty())
    throw InvalidArgument("--at also needs --run-secret FILE, the file that the run was given");
  if (!options.is_elsewhere() && !options.at.secret.empty())
    throw InvalidArgument(
        "--run-secret goes with --at HOST:PORT, which says where the run listens");
}

}  // namespace

ViewOptions parse_view_options(const std::string& command,
                               const std::vector<std::string>& arguments) {
  const std::string usage = "; see mlaunch " + command + " --help";
  ViewOptions options;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with('-')) {
      words.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const bool has_value = equals != std::string::npos;
    if (!find_view_option(command, name, usage).takes_value) {
      if (has_value) throw InvalidArgument(name + " takes no value");
      set(options, name);
      continue;
    }
    if (!has_value && i + 1 == arguments.size()) throw InvalidArgument(name + " needs a value");
    set(options, name, has_value ? word.substr(equals + 1) : arguments[++i]);
  }
  set_words(options, command, words, usage);
  check(options);
  return options;
}

}  // namespace strata::launcher
