// `train`: one rank of a training run (train --help).
#include <csignal>
#include <cstdio>
#include <string>

#include "comm/first_cause.h"
#include "core/error.h"
#include "core/rank_context.h"
#include "train/models/hf_config.h"
#include "train/run/find_stored_model.h"
#include "train/run/host_memory.h"
#include "train/run/last_words.h"
#include "train/run/memory_advice.h"
#include "train/run/model_directory.h"
#include "train/run/training_run.h"

namespace strata::train {
namespace {

void print_findings(const ResolvedConfig& config) {
  for (const std::string& note : config.notes) std::printf("note: %s\n", note.c_str());
  for (const std::string& warning : config.warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
}

std::string advice(const RunRequest& request) {
  const RankContext& context = request.context;
  return memory_advice({request.model, request.config.options},
                       {.rank = context.rank,
                        .world = context.world,
                        .local_world = context.local_world,
                        .threads = threads_per_rank(request.config.options, context)},
                       available_host_bytes());
}

/// Everything before there are ranks to talk to.
int check_config(const ParsedCommandLine& command_line, int world) {
  const std::string requested = requested_model(command_line);
  const std::string directory = resolve_model_directory(requested);
  const ResolvedConfig config =
      resolve(command_line, command_line.assumed_world > 0 ? command_line.assumed_world : world,
              read_model_config(directory), find_stored_model(requested, directory));
  print_findings(config);
  std::fputs(describe(config).c_str(), stdout);
  return static_cast<int>(ExitCode::done);
}

int run(int argc, char** argv, const RankContext& context, StatusPage& status) {
  const ParsedCommandLine command_line = parse_train_command_line(argc, argv);
  if (command_line.action == ParsedCommandLine::Action::help) {
    if (context.rank == 0) std::fputs(train_help().c_str(), stdout);
    return static_cast<int>(ExitCode::done);
  }
  if (command_line.action == ParsedCommandLine::Action::check_config)
    return check_config(command_line, context.world);
  RunRequest request;
  request.context = context;
  const std::string requested = requested_model(command_line);
  const std::string directory = resolve_model_directory(requested);
  request.model = read_model_config(directory);
  request.config =
      resolve(command_line, context.world, request.model, find_stored_model(requested, directory));
  request.config.options.model = directory;
  if (context.rank == 0) print_findings(request.config);
  try {
    return static_cast<int>(run_training(request, status));
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(std::string(error.what()) + "; " + advice(request));
  }
}

}  // namespace
}  // namespace strata::train

int main(int argc, char** argv) {
  using strata::ExitCode;
  // Where a terminal ends, so does what output is piped to: printing must not end the last save.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const strata::RankContext context = strata::rank_context_from_environment();
    strata::StatusPage status = context.status_fd >= 0 ? strata::StatusPage::open(context.status_fd)
                                                       : strata::StatusPage::create(context.rank);
    const auto fail = [&](ExitCode code, std::string message) {
      // Where this rank was does not matter when it failed because of another one.
      if (code == ExitCode::try_again) message = strata::comm::first_cause(message);
      std::fflush(stdout);
      strata::train::say_last_words(context, status, code, message);
      return static_cast<int>(code);
    };
    try {
      return strata::train::run(argc, argv, context, status);
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
