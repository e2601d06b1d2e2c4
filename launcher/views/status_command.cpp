#include "launcher/views/status_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <thread>

#include "core/error.h"
#include "core/json_writer.h"
#include "launcher/output/kept_reports.h"
#include "launcher/views/asked_run.h"
#include "launcher/views/status_text.h"
#include "launcher/views/view_options.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::seconds kTurn{1};
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

constexpr std::size_t kMostUnseen = 3;

/// What is known of a run that does not answer; `process`: of its mlaunch, 0: not known.
JsonValue silent_run(const std::string& run_id, pid_t process, const std::string& why) {
  JsonWriter json(0);
  json.begin_object().member("version", 1).member("run", run_id).member("state", "no answer");
  json.key("process");
  if (process > 0)
    json.value(process);
  else
    json.null();
  json.member("why", why).key("ranks").begin_array().end_array();
  return parse_json(json.end_object().finish(), "status of run " + run_id, {});
}

JsonValue silent_run(const RunRecord& record) {
  return silent_run(record.run_id, record.process, record.why_silent());
}

/// Asks the runs, and skips those that have ended.
std::vector<JsonValue> ask_all(const RunsOfUser& runs, const std::vector<std::string>& ids) {
  std::vector<JsonValue> answers;
  for (const std::string& id : ids) {
    try {
      if (auto answer = runs.ask(id, "status"))
        answers.push_back(std::move(*answer));
      else if (const auto record = runs.unheard(id))
        answers.push_back(silent_run(*record));
    } catch (const NoAnswer& error) {
      answers.push_back(silent_run(id, error.process(), error.why()));
    } catch (const HostError& error) {
      answers.push_back(silent_run(id, 0, error.what()));
    }
  }
  return answers;
}

std::string json_text(const std::vector<JsonValue>& answers, int indent) {
  JsonWriter json(indent);
  json.begin_object().member("version", 1).key("runs").begin_array();
  for (const JsonValue& answer : answers) json.value(answer);
  return json.end_array().end_object().finish() + "\n";
}

std::string table_text(const std::vector<JsonValue>& answers) {
  if (answers.empty()) return "no run of this user is on this host\n";
  std::string text = runs_table(answers);
  if (const std::string trouble = trouble_text(answers); !trouble.empty()) text += "\n" + trouble;
  if (answers.size() > 1) return text;
  for (const std::string& table : {hosts_table(answers.front()), ranks_table(answers.front())})
    if (!table.empty()) text += "\n" + table;
  return text;
}

/// Says what is left of a run that has ended.
std::string past_text(const JsonValue& end) {
  const auto ended_at = end.find("ended_at"), folder = end.find("log_folder");
  std::string text = describe_end(end);
  if (ended_at) text += "\nit ended at " + ended_at->as_string();
  if (folder && folder->as_string().empty()) {
    const auto run = end.find("run");
    const std::string reports =
        run ? KeptReports(KeptReports::place()).folder_of(run->as_string()) : "";
    text += reports.empty() ? "\nnothing else was kept of it" : "\nits reports are in " + reports;
    text += "; with mlaunch --log-dir DIR the next one leaves logs";
  }
  return text + "\n";
}

/// Says which runs were killed lately, and which are on other hosts; "" if none is.
std::string unseen_text(const RunsOfUser& runs) {
  std::string text;
  for (const RunRecord& one : runs.killed_lately() | std::views::take(kMostUnseen))
    text += fmt::format("run {} was killed, and was seen last at {}; mlaunch status {}\n",
                        one.run_id, one.seen_at, one.run_id);
  for (const RunRecord& one : runs.elsewhere_lately() | std::views::take(kMostUnseen))
    text += fmt::format("run {} is on host {}, where it was seen last at {}; ask there\n",
                        one.run_id, one.host, one.seen_at);
  return text;
}

/// Returns the id of the run that `options` name, which need not answer; "": none is named.
std::string chosen(const RunsOfUser& runs, const ViewOptions& options) {
  if (options.run.empty()) return {};
  try {
    return runs.choose(options.run);
  } catch (const NoAnswer& error) {
    return error.run_id();
  }
}

/// Lists all runs of this host that go on.
std::vector<std::string> all_ids(const RunsOfUser& runs) {
  std::vector<std::string> ids = runs.living();
  for (const RunRecord& record : runs.silent())
    if (std::ranges::count(ids, record.run_id) == 0) ids.push_back(record.run_id);
  return ids;
}

using Answers = std::function<std::vector<JsonValue>()>;

/// Prints each second until the run has ended (`end`), or, without one, all runs have.
void watch(const Answers& ask, RunEnd* end, const ViewOptions& options, StandardOutput& output) {
  const bool clears = !options.json && ::isatty(STDOUT_FILENO) == 1;
  for (bool first = true; output.takes_text(); first = false) {
    const auto answers = ask();
    if (answers.empty() && !first) break;
    const std::string gap = clears ? kClearScreen : first || options.json ? "" : "\n";
    output.print(options.json ? json_text(answers, 0) : gap + table_text(answers));
    if (answers.empty()) break;
    if (end == nullptr)
      std::this_thread::sleep_for(kTurn);
    else if (end->wait(kTurn))
      break;
  }
  if (!options.json && end != nullptr) output.print("\n" + end->describe() + "\n");
}

void show(const Answers& ask, const ViewOptions& options, StandardOutput& output) {
  const auto answers = ask();
  output.print(options.json ? json_text(answers, 2) : table_text(answers));
}

void show_remote(const ViewOptions& options, StandardOutput& output) {
  RemoteRun run(options);
  const Answers ask = [&] {
    auto answer = run.ask(AskStatus{});
    return answer ? std::vector<JsonValue>{std::move(*answer)} : std::vector<JsonValue>{};
  };
  options.watch ? watch(ask, run.end().get(), options, output) : show(ask, options, output);
}

void show_local(const ViewOptions& options, StandardOutput& output) {
  const RunsOfUser runs(ControlFolder::places());
  if (const auto end = runs.find_ended(options.run))
    return output.print(options.json ? json_text({*end}, 2) : past_text(*end));
  const std::string run_id = chosen(runs, options);
  const Answers ask = [&] {
    return run_id.empty() ? ask_all(runs, all_ids(runs)) : ask_all(runs, {run_id});
  };
  if (!options.watch) {
    show(ask, options, output);
    if (!options.json && run_id.empty()) output.print(unseen_text(runs));
    return;
  }
  std::unique_ptr<RunEnd> end;
  if (!run_id.empty()) end = std::make_unique<EndOfLocalRun>(runs, run_id);
  watch(ask, end.get(), options, output);
}

}  // namespace

int status_command(const std::vector<std::string>& arguments, StandardOutput& output) {
  const ViewOptions options = parse_view_options("status", arguments);
  if (options.show_help)
    output.print(view_help("status"));
  else if (options.is_elsewhere())
    show_remote(options, output);
  else
    show_local(options, output);
  return 0;
}

}  // namespace strata::launcher
