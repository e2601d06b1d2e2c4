#include "launcher/views/view_options.h"

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/integer.h"
#include "core/nearest_name.h"

namespace strata::launcher {
namespace {

constexpr int kMostSeconds = 86400;

std::vector<std::string_view> options_of(const std::string& command) {
  if (command == "status") return {"-h", "--help", "--json", "--watch"};
  return {"-h", "--help", "--now", "--wait"};
}

std::chrono::seconds seconds_of(const std::string& text) {
  const auto value = parse_integer(text);
  if (!value || *value < 0 || *value > kMostSeconds)
    throw InvalidArgument("--wait " + text + ": expected an integer from 0 to " +
                          std::to_string(kMostSeconds));
  return std::chrono::seconds(*value);
}

}  // namespace

ViewOptions parse_view_options(const std::string& command,
                               const std::vector<std::string>& arguments) {
  const std::vector<std::string_view> known = options_of(command);
  const std::string usage = "; see mlaunch " + command + " --help";
  ViewOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (!word.starts_with('-')) {
      if (word.empty()) throw InvalidArgument("the run's id is empty" + usage);
      if (!options.run.empty())
        throw InvalidArgument("one run at a time: " + options.run + " or " + word + usage);
      options.run = word;
      continue;
    }
    if (std::ranges::find(known, name) == known.end())
      throw InvalidArgument("mlaunch " + command + " has no option " + name +
                            suggestion(name, known) + usage + ", or start a program of that name " +
                            "with: mlaunch -- " + command);
    if (name == "--wait") {
      if (equals == std::string::npos && i + 1 == arguments.size())
        throw InvalidArgument("--wait needs a number of seconds");
      options.wait =
          seconds_of(equals != std::string::npos ? word.substr(equals + 1) : arguments[++i]);
      continue;
    }
    if (equals != std::string::npos) throw InvalidArgument(name + " takes no value");
    options.show_help |= name == "-h" || name == "--help";
    options.json |= name == "--json";
    options.watch |= name == "--watch";
    options.now |= name == "--now";
  }
  return options;
}

std::string view_help(const std::string& command) {
  if (command == "status")
    return R"(mlaunch status shows the runs of this user on this host; with RUN, or if there is only one, its
ranks, too: phase, time in it, memory, newest checkpoint and where they are.

    mlaunch status [RUN] [options]

RUN is the id of a run or the beginning of one. Of one that has ended it says how, what it has saved
and where its logs are (mlaunch --log-dir DIR), while it is among the last 32.

Options
    --json       print JSON (docs/formats/status.md)
    --watch      print again each second until the run ends (without RUN: all runs) or Ctrl-C
    -h, --help   this text

It sees runs that mlaunch supervises itself, not those of --launcher mpi. A program that is called
status starts with: mlaunch -- status
)";
  return R"(mlaunch stop lets the ranks of a run of this user on this host finish their step, save a
checkpoint and end, as SIGTERM to its mlaunch does: the run ends with code 75. It waits for the end.

    mlaunch stop [RUN] [options]

RUN is the id of a run or the beginning of one (mlaunch status); not needed if there is only one.
A run that was asked before is not asked again. Ranks that are stopped (SIGSTOP) or frozen save
nothing: it names them, and they are killed after 5 s.

Options
    --now            end the ranks at once, as Ctrl-C does; a second time: kill them
    --wait SECONDS   wait for the end at most so long (default: the run's own --grace, after which
                     its ranks are killed, and 10 s; with --now 15 s); 0: do not wait
    -h, --help       this text

Exit codes: 0 the run has ended, now or before (with --wait 0: was asked), 75 not yet, 2 there is
no such run.
It sees runs that mlaunch supervises itself, not those of --launcher mpi. A program that is called
stop starts with: mlaunch -- stop
)";
}

}  // namespace strata::launcher
