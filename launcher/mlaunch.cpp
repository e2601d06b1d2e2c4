// The program mlaunch: parses the command line, runs the ranks, returns the exit code.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/host_name.h"
#include "core/own_files.h"
#include "core/rank_context.h"
#include "core/run_id.h"
#include "core/standard_output.h"
#include "core/system_call.h"
#include "core/version.h"
#include "launcher/command/free_port.h"
#include "launcher/command/mpi_command.h"
#include "launcher/command/network_interface.h"
#include "launcher/command/options.h"
#include "launcher/command/program_output.h"
#include "launcher/command/program_path.h"
#include "launcher/command/slurm_job.h"
#include "launcher/command/train_arguments.h"
#include "launcher/group/rank_environment.h"
#include "launcher/output/report_writers.h"
#include "launcher/output/write_report_command.h"
#include "launcher/supervisor.h"
#include "launcher/views/logs_command.h"
#include "launcher/views/runs_of_user.h"
#include "launcher/views/status_command.h"
#include "launcher/views/stop_command.h"
#include "launcher/wire/secret_command.h"

namespace strata::launcher {
namespace {

void print_error(const std::string& text) { std::fprintf(stderr, "mlaunch: %s\n", text.c_str()); }

/// Throws if mlaunch itself is a rank: ranks that start ranks would be counted twice.
void refuse_to_be_a_rank() {
  // WORLD_SIZE without RANK is a setting that a script exports for launchers; ranks get their own.
  if (std::getenv("RANK") == nullptr && ::unsetenv("WORLD_SIZE") != 0)
    throw_system_error("unsetenv");
  const RankContext context = rank_context_from_environment();
  if (context.world > 1)
    throw InvalidArgument(
        fmt::format("mlaunch was itself started as rank {} of {} by {}; start the program directly "
                    "there, or mlaunch alone",
                    context.rank, context.world, context.started_by));
}

/// Ends here for a mistake in the command line of train: hosts that wait for one another would hear
/// of it from their ranks. Of agents that it starts itself, an mlaunch has read it for them.
void check_program_arguments(const Options& options) {
  if (const std::string train = own_train(options.command);
      !train.empty() && options.hosts.secret != "-")
    check_train_arguments(train, options.command);
}

[[noreturn]] void become_mpirun(const Options& options, const std::string& program) {
  const bool as_root = ::geteuid() == 0;
  if (as_root) print_error("note: running as root, so mpirun gets --allow-run-as-root");
  const std::vector<std::string> command = mpi_command(options, program, as_root);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp("mpirun", arguments.data());
  throw_system_error("starting mpirun (Debian: apt install openmpi-bin)");
}

/// Asks Slurm to start the job again. Slurm may end this process while it waits for the answer.
void requeue(const std::string& job) {
  try {
    if (!may_start_again(output_of({"scontrol", "show", "job", "--oneliner", job})))
      return print_error(fmt::format("job {} is cancelled, so it does not start again", job));
    print_error(fmt::format("the run can go on: scontrol requeue {}", job));
    (void)output_of({"scontrol", "requeue", job});
  } catch (const HostError& error) {
    print_error(fmt::format("the job does not start again: {}", error.what()));
  }
}

/// Does what a first word asks for that is no program to start; nullopt if there is no such word.
std::optional<int> run_command(const std::vector<std::string>& arguments, StandardOutput& output) {
  // These words are no programs: those start with ./status or mlaunch -- status.
  const std::string first = arguments.empty() ? "" : arguments.front();
  const std::vector<std::string> others(arguments.begin() + (arguments.empty() ? 0 : 1),
                                        arguments.end());
  if (first == "status") return status_command(others, output);
  if (first == "logs") return logs_command(others, output);
  if (first == "secret") return secret_command(others, output);
  if (first == "stop") return stop_command(others, output);
  if (first == ReportWriters::kWord)
    return write_report_command(
        others, [] { return RunsOfUser(ControlFolder::places()).living(); }, output);
  return {};
}

/// Returns the words that may have been meant by the program's name: only the first word is one.
std::vector<std::string_view> words_for(const std::vector<std::string>& arguments,
                                        const Options& options) {
  if (arguments.front() != options.command.front()) return {};
  return {"status", "stop", "logs", "secret"};
}

int run(const std::vector<std::string>& arguments, StandardOutput& output) {
  if (const auto code = run_command(arguments, output)) return *code;
  Run run;
  const Surroundings surroundings = surroundings_of(own_environment());
  run.options = parse_options(arguments, surroundings);
  run.typed = arguments;
  if (run.options.show_help || run.options.show_version) {
    output.print(run.options.show_help ? help_text() : version_text("mlaunch") + "\n");
    return static_cast<int>(ExitCode::done);
  }
  if (!run.options.hosts.are_several()) refuse_to_be_a_rank();
  check_network_interface(run.options, surroundings);
  for (const std::string& note : run.options.notes) print_error("note: " + note);
  // Another host would wait in vain for one that ends here: it learns of it when ranks start.
  if (run.options.hosts.coordinates)
    run.program_path = find_program(run.options.command.front(), words_for(arguments, run.options));
  if (run.options.hosts.are_several()) check_program_arguments(run.options);
  run.run_id = make_run_id();
  const auto devices = choose_devices(run.options.devices, devices_of_host());
  if (!run.options.ranks_given && !devices.empty())
    run.options.ranks = static_cast<int>(devices.size());
  run.visible_devices = device_list(devices);
  if (run.options.launcher == Options::Launcher::mpi && run.options.hosts.listed.empty()) {
    if (::setenv("STRATA_RUN_ID", run.run_id.c_str(), 1) != 0) throw_system_error("setenv");
    if (::unsetenv("STRATA_RANK") != 0) throw_system_error("unsetenv");  // of an mlaunch around us
    if (!devices.empty() && ::setenv("CUDA_VISIBLE_DEVICES", run.visible_devices.c_str(), 1) != 0)
      throw_system_error("setenv");
    become_mpirun(run.options, run.program_path);
  }
  run.master_port = run.options.master_port ? *run.options.master_port : find_free_port();
  run.host = host_name();
  const int exit_code = supervise(run);
  if (exit_code == static_cast<int>(ExitCode::try_again) && !run.options.requeued_job.empty())
    requeue(run.options.requeued_job);
  return exit_code;
}

}  // namespace
}  // namespace strata::launcher

int main(int argc, char** argv) {
  try {
    std::signal(SIGCHLD, SIG_DFL);  // a parent that ignores it would have children reaped unseen
    strata::open_closed_streams();
    strata::StandardOutput output;
    const int code = strata::launcher::run({argv + 1, argv + argc}, output);
    return output.exit_code_after(
        code, [](const strata::Error& error) { strata::launcher::print_error(error.what()); });
  } catch (const strata::Error& error) {
    strata::launcher::print_error(error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    strata::launcher::print_error(std::string("unexpected: ") + error.what());
    return static_cast<int>(strata::ExitCode::internal);
  }
}
