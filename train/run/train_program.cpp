#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

#include "comm/first_cause.h"
#include "core/error.h"
#include "core/rank_context.h"
#include "machine/hardware_file.h"
#include "train/models/hf_config.h"
#include "train/run/console.h"
#include "train/run/find_stored_model.h"
#include "train/run/last_words.h"
#include "train/run/model_directory.h"
#include "train/run/plan_only.h"
#include "train/run/programs.h"
#include "train/run/training_run.h"

namespace strata::train {
namespace {

void print_findings(const ResolvedConfig& config, Console& console) {
  for (const std::string& note : config.notes) console.print("note: " + note);
  for (const std::string& warning : config.warnings) console.warn(warning);
}

/// That settings are resolved for: those of this run, or that are assumed where nothing is trained.
int ranks_of(const ParsedCommandLine& command_line, const RunRequest& request) {
  if (command_line.assumed_world > 0) return command_line.assumed_world;
  if (request.hardware) return request.hardware->hosts * request.hardware->devices;
  return request.context.world;
}

/// A request that is planned and not run has these ranks, on the machine of --hardware, whose
/// devices have the memory that driver and libraries leave.
void assume(int world, RunRequest& request) {
  RankContext& context = request.context;
  if (world != context.world) context.world = context.local_world = world;
  if (!request.hardware) return;
  machine::Machine& hardware = *request.hardware;
  if (const int devices = hardware.hosts * hardware.devices;
      world > devices && !hardware.host_is_device())
    throw InvalidArgument("--world-size " + std::to_string(world) +
                          ": the machine of --hardware has " + std::to_string(devices) +
                          " devices");
  const int spread = (world + hardware.hosts - 1) / hardware.hosts;
  context.local_world = std::max(std::min(world, hardware.devices), spread);
  hardware.hosts = (world + context.local_world - 1) / context.local_world;  // that are used
  std::int64_t& budget = request.config.options.offload.device_memory_bytes;
  if (hardware.host_is_device()) return;
  budget = std::min(budget,
                    hardware.device.memory_bytes.whole() - hardware.device.reserved_bytes.whole());
}

int run(int argc, char** argv, RunRequest request, StatusPage& status, Console& console) {
  const RankContext& context = request.context;
  const ParsedCommandLine command_line = parse_train_command_line(argc, argv);
  if (command_line.action == ParsedCommandLine::Action::help) {
    console.print(train_help());
    return static_cast<int>(ExitCode::done);
  }
  const bool checks = command_line.action == ParsedCommandLine::Action::check_config;
  if (!command_line.hardware.empty())
    request.hardware = machine::load_hardware(command_line.hardware);
  const int world = ranks_of(command_line, request);
  const std::string requested = requested_model(command_line);
  const std::string directory = resolve_model_directory(requested);
  request.model = read_model_config(directory, request.own);
  request.config =
      resolve(command_line, world, request.model, find_stored_model(requested, directory));
  request.config.options.model = directory;
  print_findings(request.config, console);
  if (checks) console.print(describe(request.config));
  if (plans_only(request.config.options, checks)) {
    assume(world, request);
    if (context.rank == 0) print_plan_only(request, console);
    return static_cast<int>(ExitCode::done);
  }
  if (checks) return static_cast<int>(ExitCode::done);
  if (command_line.assumed_world > 0)
    throw InvalidArgument(
        "--world-size assumes ranks where nothing is trained: with --check-config, or with "
        "--print-plan or --print-program and --steps 0");
  if (request.hardware)
    throw InvalidArgument(
        "--hardware plans for a machine and trains nothing: with --print-plan or --print-program "
        "and --steps 0; a run takes the machine that it is on");
  return static_cast<int>(run_training(request, status, console));
}

}  // namespace

int train_program(int argc, char** argv, std::span<const ModelFamily> own) {
  // Where a terminal ends, so does what output is piped to: printing must not end the last save.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const RankContext context = rank_context_from_environment();
    Console console(context);
    StatusPage status = context.status_fd >= 0 ? StatusPage::open(context.status_fd)
                                               : StatusPage::create(context.rank);
    const auto fail = [&](ExitCode code, std::string message) {
      // Where this rank was does not matter when it failed because of another one.
      if (code == ExitCode::try_again) message = comm::first_cause(message);
      console.end_progress();
      say_last_words(context, status, code, message, console);
      return static_cast<int>(code);
    };
    try {
      RunRequest request;
      request.context = context;
      request.own = own;
      return run(argc, argv, std::move(request), status, console);
    } catch (const Error& error) {
      return fail(error.exit_code(), error.what());
    } catch (const std::bad_alloc&) {
      return fail(ExitCode::host, "out of host memory outside the planned arenas");
    } catch (const std::exception& error) {
      return fail(ExitCode::internal, error.what());
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}

}  // namespace strata::train
