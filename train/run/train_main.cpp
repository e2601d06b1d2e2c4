// `train`: one rank of a training run (train --help).
#include <csignal>
#include <cstdio>
#include <string>

#include "comm/first_cause.h"
#include "core/error.h"
#include "core/rank_context.h"
#include "train/models/hf_config.h"
#include "train/run/console.h"
#include "train/run/find_stored_model.h"
#include "train/run/last_words.h"
#include "train/run/model_directory.h"
#include "train/run/plan_only.h"
#include "train/run/training_run.h"

namespace strata::train {
namespace {

void print_findings(const ResolvedConfig& config, Console& console) {
  for (const std::string& note : config.notes) console.print("note: " + note);
  for (const std::string& warning : config.warnings) console.warn(warning);
}

int run(int argc, char** argv, const RankContext& context, StatusPage& status, Console& console) {
  const ParsedCommandLine command_line = parse_train_command_line(argc, argv);
  if (command_line.action == ParsedCommandLine::Action::help) {
    console.print(train_help());
    return static_cast<int>(ExitCode::done);
  }
  const bool checks = command_line.action == ParsedCommandLine::Action::check_config;
  const int world = command_line.assumed_world > 0 ? command_line.assumed_world : context.world;
  RunRequest request;
  request.context = context;
  const std::string requested = requested_model(command_line);
  const std::string directory = resolve_model_directory(requested);
  request.model = read_model_config(directory);
  request.config =
      resolve(command_line, world, request.model, find_stored_model(requested, directory));
  request.config.options.model = directory;
  print_findings(request.config, console);
  if (checks) console.print(describe(request.config));
  if (plans_only(request.config.options, checks)) {
    if (world != context.world) request.context.world = request.context.local_world = world;
    if (context.rank == 0) print_plan_only(request, console);
    return static_cast<int>(ExitCode::done);
  }
  if (checks) return static_cast<int>(ExitCode::done);
  if (command_line.assumed_world > 0)
    throw InvalidArgument(
        "--world-size assumes ranks where nothing is trained: with --check-config, or with "
        "--print-plan or --print-program and --steps 0");
  return static_cast<int>(run_training(request, status, console));
}

}  // namespace
}  // namespace strata::train

int main(int argc, char** argv) {
  using strata::ExitCode;
  // Where a terminal ends, so does what output is piped to: printing must not end the last save.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const strata::RankContext context = strata::rank_context_from_environment();
    strata::train::Console console(context);
    strata::StatusPage status = context.status_fd >= 0 ? strata::StatusPage::open(context.status_fd)
                                                       : strata::StatusPage::create(context.rank);
    const auto fail = [&](ExitCode code, std::string message) {
      // Where this rank was does not matter when it failed because of another one.
      if (code == ExitCode::try_again) message = strata::comm::first_cause(message);
      console.end_progress();
      strata::train::say_last_words(context, status, code, message, console);
      return static_cast<int>(code);
    };
    try {
      return strata::train::run(argc, argv, context, status, console);
    } catch (const strata::Error& error) {
      return fail(error.exit_code(), error.what());
    } catch (const std::bad_alloc&) {
      return fail(ExitCode::host, "out of host memory outside the planned arenas");
    } catch (const std::exception& error) {
      return fail(ExitCode::internal, error.what());
    }
  } catch (const strata::Error& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
