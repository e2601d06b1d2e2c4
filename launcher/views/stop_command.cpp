#include "launcher/views/stop_command.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/without_numbers.h"
#include "launcher/views/asked_run.h"
#include "launcher/views/status_text.h"
#include "launcher/views/view_options.h"

namespace strata::launcher {
namespace {

/// For what follows the grace: killing, reading outputs to their end.
constexpr std::chrono::seconds kAfterGrace{10};
constexpr std::chrono::seconds kAtOnce{15};
/// Between looks at a run that ends.
constexpr std::chrono::milliseconds kBetweenStopLooks{1000};

/// Says of ranks that hear no request why, and what becomes of them; "" if all hear it.
std::string held_text(const JsonValue& answer) {
  const auto held = answer.find("held");  // another version of mlaunch may not tell
  if (!held || held->size() == 0) return "";
  std::vector<std::int64_t> ranks, stopped;
  for (const JsonValue& rank : held->elements()) {
    ranks.push_back(rank.at("rank").as_integer());
    if (!rank.at("frozen").as_boolean()) stopped.push_back(rank.at("process").as_integer());
  }
  const bool several = ranks.size() > 1;
  std::string ways;
  if (!stopped.empty()) ways = fmt::format("kill -CONT {}", fmt::join(stopped, " "));
  if (stopped.size() < ranks.size())
    ways +=
        fmt::format("{}thaw {} control group", ways.empty() ? "" : ", ", several ? "their" : "its");
  return fmt::format(
      "\nrank{} {} {} stopped or frozen, so nothing can be saved until {} on ({}); after {} s {} "
      "killed",
      several ? "s" : "", fmt::join(ranks, ", "), several ? "are" : "is",
      several ? "they go" : "it goes", ways, answer.at("held_limit_seconds").as_integer(),
      several ? "they are" : "it is");
}

std::string what_was_done(const std::string& run_id, bool now, const JsonValue& answer) {
  if (now) return "run " + run_id + " ends at once";
  if (answer.at("was_asked").as_boolean())
    return fmt::format("run {} was asked to end before; mlaunch stop --now {} ends it at once",
                       run_id, run_id) +
           held_text(answer);
  return "run " + run_id + " is asked to save and end" + held_text(answer);
}

/// Prints which saves fail, each once however often it is tried again, until the run has ended or
/// the limit has passed; returns true if it has ended.
bool wait_for_end(AskedRun& run, RunEnd& end, std::chrono::seconds limit, StandardOutput& output) {
  using Clock = std::chrono::steady_clock;
  std::vector<ShownSaveFailure> told;
  for (const auto until = Clock::now() + limit;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (end.wait(std::clamp<std::chrono::milliseconds>(left, std::chrono::milliseconds(0),
                                                       kBetweenStopLooks)))
      return true;
    if (left <= kBetweenStopLooks) return false;
    try {
      const auto status = run.ask(AskStatus{});
      if (!status) continue;
      for (const ShownSaveFailure& one : save_failures(*status)) {
        const bool is_told = std::ranges::any_of(told, [&](const ShownSaveFailure& other) {
          return other.step == one.step && without_numbers(other.why) == without_numbers(one.why);
        });
        if (is_told) continue;
        told.push_back(one);
        output.print(fmt::format("the checkpoint of step {:.0f} could not be written: {}\n",
                                 one.step, one.why));
      }
    } catch (const HostError&) {
      // It is busy, and its end is waited for all the same.
    }
  }
}

/// Who closed the output, or has a full disk under it, still wants the run to end.
int stop(AskedRun& run, const ViewOptions& options, StandardOutput& output) {
  const std::unique_ptr<RunEnd> end = run.end();  // before the request: a run may end at once
  std::optional<JsonValue> answer;
  try {
    answer = run.ask(AskStop{options.now});
  } catch (const NoAnswer& error) {
    std::fprintf(stderr, "mlaunch: %s; once it goes on it obeys: the run %s\n", error.what(),
                 options.now ? "ends at once" : "saves and ends");
    return static_cast<int>(ExitCode::try_again);
  }
  std::chrono::seconds limit = options.wait.value_or(kAtOnce);
  if (answer) {
    output.print(what_was_done(run.id(), options.now, *answer) + "\n");
    const std::chrono::seconds grace(answer->at("grace_seconds").as_integer());
    if (!options.wait && !options.now) limit = grace + kAfterGrace;
  }
  if (options.wait == std::chrono::seconds(0)) return 0;
  if (wait_for_end(run, *end, limit, output)) {
    output.print(end->describe() + "\n");
    return 0;
  }
  std::fprintf(stderr, "mlaunch: run %s has not ended within %lld s; mlaunch stop --now %s\n",
               run.id().c_str(), static_cast<long long>(limit.count()), run.id().c_str());
  return static_cast<int>(ExitCode::try_again);
}

int stop_local(const ViewOptions& options, StandardOutput& output) {
  const RunsOfUser runs(ControlFolder::places());
  if (const auto ended = runs.find_ended(options.run)) {
    output.print(describe_end(*ended) + "\n");
    return 0;
  }
  std::string id;
  try {
    id = runs.choose(options.run);
  } catch (const NoAnswer& error) {
    const auto record = runs.unheard(error.run_id());
    if (record && !record->is_here()) throw;
    std::fprintf(stderr, "mlaunch: %s; the run was not asked to end, try again\n", error.what());
    return static_cast<int>(ExitCode::try_again);
  }
  LocalRun run(runs, id);
  return stop(run, options, output);
}

}  // namespace

int stop_command(const std::vector<std::string>& arguments, StandardOutput& output) {
  const ViewOptions options = parse_view_options("stop", arguments);
  if (options.show_help) {
    output.print(view_help("stop"));
    return 0;
  }
  if (!options.is_elsewhere()) return stop_local(options, output);
  RemoteRun run(options);
  return stop(run, options, output);
}

}  // namespace strata::launcher
