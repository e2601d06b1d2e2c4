#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/freed_memory.h"
#include "core/rank_context.h"
#include "core/version.h"
#include "train/run/plan_only.h"
#include "train/run/planning_site.h"
#include "train/session/console_listener.h"
#include "train/session/programs.h"
#include "train/session/progress.h"
#include "train/session/session.h"
#include "train/session/settle_request.h"
#include "train/session/status_listener.h"

namespace strata::train {
namespace {

void tell_findings(const ResolvedConfig& config, const RunListeners& listeners) {
  for (const std::string& note : config.notes) listeners.print("note: " + note);
  for (const std::string& warning : config.warnings) listeners.warn(warning);
}

/// Warns of ranks that could not add gradients together, as the start of a run would refuse them.
/// Ranks that are there, or that --hardware places on hosts, are refused now; of others that
/// --world-size assumes nobody knows on how many hosts they would be.
void check_ranks(const ParsedCommandLine& command_line, RunRequest request,
                 const RunListeners& listeners) {
  const int ranks = ranks_of(command_line, request);
  try {
    assume_ranks(ranks, request);
  } catch (const ConfigError& error) {
    if (command_line.assumed_world == 0 || request.hardware) throw;
    listeners.warn(
        fmt::format("--world-size {}, if all of them are of one host: {}", ranks, error.what()));
  }
}

/// The request to train, if any; otherwise does what the command line asks for.
std::optional<RunRequest> prepare(const ParsedCommandLine& command_line, RunRequest request,
                                  const RunListeners& listeners) {
  const bool checks = command_line.action == ParsedCommandLine::Action::check_config;
  tell_findings(request.config, listeners);
  if (checks) listeners.print(describe(request.config));
  if (plans_only(request.config.options, checks)) {
    keep_freed_memory();
    assume_ranks(ranks_of(command_line, request), request);
    if (request.context.rank == 0) print_plan_only(request, listeners);
    return {};
  }
  if (checks) {
    check_ranks(command_line, std::move(request), listeners);
    return {};
  }
  if (command_line.assumed_world > 0)
    throw InvalidArgument(
        "--world-size works only where nothing is trained: with --check-config, or with "
        "--print-plan or --print-program and --steps 0");
  if (request.hardware)
    throw InvalidArgument(
        "--hardware plans for a machine and trains nothing: add --print-plan or --print-program "
        "and --steps 0; a run uses its own machine");
  return request;
}

ExitCode run(std::optional<RunRequest> request, RunListeners& listeners, Console& console) {
  if (!request) return ExitCode::done;
  return_freed_memory();
  const TrainOptions& options = request->config.options;
  Progress progress(console, {.every_steps = options.steps_per_print,
                              .log_every = std::chrono::seconds(options.log_every_seconds)});
  listeners.add(std::ref(progress));
  // The arenas come next. What planning leaves would count beside them.
  listeners.add([](const RunEvent& event) {
    if (std::holds_alternative<Equipping>(event)) return_memory_freed_so_far();
  });
  request->owns_signals = true;
  try {
    return Session::open(std::move(*request), listeners).run();
  } catch (const std::exception& error) {
    return refusal_of(error).code;  // listeners have heard the error
  }
}

}  // namespace

int train_program(int argc, char** argv, std::span<const ModelFamily> own) {
  // Pipes often close together with a terminal, and files may have a largest size (ulimit -f):
  // printing must not end the last save then.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  try {
    open_closed_streams();
    RankContext context = rank_context_from_environment();
    Console console(context);
    StatusPage page = status_page_of(context);
    context.page = &page;
    RunListeners listeners;
    ConsoleListener screen(console, context, page);
    StatusListener status(page);
    listeners.add(std::ref(screen));
    listeners.add(std::ref(status));
    std::optional<RunRequest> request;
    try {
      const ParsedCommandLine command_line = parse_train_command_line(argc, argv);
      if (command_line.action == ParsedCommandLine::Action::help)
        listeners.print(train_help());
      else if (command_line.action == ParsedCommandLine::Action::version)
        listeners.print(version_text("train"));
      else
        request = prepare(command_line, settle_request(command_line, context, own), listeners);
    } catch (const std::exception& error) {
      const Refused refused = refusal_of(error);
      listeners.tell(refused);
      return static_cast<int>(refused.code);
    }
    const ExitCode code = run(std::move(request), listeners, console);
    if (code == ExitCode::done) console.finish();  // other codes say more than that text is lost
    return static_cast<int>(code);
  } catch (const Error& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}

}  // namespace strata::train
