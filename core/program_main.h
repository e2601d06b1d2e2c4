// The body of main() of programs that mlaunch may start: an error becomes the exit code and one
// line, which the launcher prints if there is one.
#pragma once

#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/standard_output.h"
#include "core/status_page.h"

namespace strata {

/// Calls `run(context, output)`, which returns the exit code. Text that `output` lost is an error
/// then, and its exit code follows in place of 0. `name` precedes messages on the terminal.
template <typename Run>
int program_main(const char* name, const Run& run) {
  std::optional<StatusPage> status;
  const auto fail = [&](ExitCode code, const std::string& message) {
    if (status)
      status->set_error(message);  // mlaunch prints it
    else
      std::fprintf(stderr, "%s: %s\n", name, message.c_str());
    return static_cast<int>(code);
  };
  try {
    // A file that may not grow (ulimit -f) is an error then, and does not end the program.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);  // a parent that ignores it would have children reaped unseen
    open_closed_streams();
    const RankContext context = rank_context_from_environment();
    if (context.status_fd >= 0) status = StatusPage::open(context.status_fd);
    StandardOutput output;
    const int code = output.exit_code_after(run(context, output), [&](const Error& error) {
      (void)fail(error.exit_code(), error.what());
    });
    if (status) status->set_phase(Phase::done);  // set for any code: a returned code is no failure
    return code;
  } catch (const Error& error) {
    return fail(error.exit_code(), error.what());
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, error.what());
  }
}

}  // namespace strata
