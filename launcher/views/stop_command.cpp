#include "launcher/views/stop_command.h"

#include <fmt/core.h>

#include <cstdio>
#include <optional>

#include "core/error.h"
#include "launcher/views/run_end.h"
#include "launcher/views/runs_of_user.h"
#include "launcher/views/view_options.h"

namespace strata::launcher {
namespace {

/// For what follows the grace: killing, reading outputs to their end.
constexpr std::chrono::seconds kAfterGrace{10};
constexpr std::chrono::seconds kAtOnce{15};

void say(const std::string& text) {
  // Who closed the output still wants the run to end.
  (void)std::puts(text.c_str());
  (void)std::fflush(stdout);
}

std::string what_was_done(const std::string& run_id, bool now, bool was_asked) {
  if (now) return "run " + run_id + " ends at once";
  if (was_asked)
    return fmt::format("run {} was asked to end before; mlaunch stop --now {} ends it at once",
                       run_id, run_id);
  return "run " + run_id + " saves and ends";
}

}  // namespace

int stop_command(const std::vector<std::string>& arguments) {
  const ViewOptions options = parse_view_options("stop", arguments);
  if (options.show_help) {
    std::fputs(view_help("stop").c_str(), stdout);
    return 0;
  }
  const RunsOfUser runs(ControlFolder::places());
  const std::string run_id = runs.choose(options.run);
  RunEnd end(runs, run_id);  // before the request: a run may end at once
  const auto answer = runs.ask(run_id, options.now ? "stop now" : "stop");
  std::chrono::seconds limit = options.wait.value_or(kAtOnce);
  if (answer) {
    say(what_was_done(run_id, options.now, answer->at("was_asked").as_boolean()));
    const std::chrono::seconds grace(answer->at("grace_seconds").as_integer());
    if (!options.wait && !options.now) limit = grace + kAfterGrace;
  }
  if (options.wait == std::chrono::seconds(0)) return 0;
  if (end.wait(limit)) {
    say(end.describe());
    return 0;
  }
  std::fprintf(stderr, "mlaunch: run %s has not ended within %lld s; mlaunch stop --now %s\n",
               run_id.c_str(), static_cast<long long>(limit.count()), run_id.c_str());
  return static_cast<int>(ExitCode::try_again);
}

}  // namespace strata::launcher
