// The body of main() where mlaunch may have started the program: errors become the exit code and a
// line, printed by the launcher if any.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/status_page.h"

namespace strata {

/// `run(context)` returns the exit code. `name` stands before messages on the terminal.
template <typename Run>
int program_main(const char* name, const Run& run) {
  std::optional<StatusPage> status;
  const auto fail = [&](ExitCode code, const std::string& message) {
    if (status)
      status->set_error(message);  // mlaunch says it
    else
      std::fprintf(stderr, "%s: %s\n", name, message.c_str());
    return static_cast<int>(code);
  };
  try {
    const RankContext context = rank_context_from_environment();
    if (context.status_fd >= 0) status = StatusPage::open(context.status_fd);
    const int code = run(context);
    if (status) status->set_phase(Phase::done);  // whatever the code says: it is no failure
    return code;
  } catch (const Error& error) {
    return fail(error.exit_code(), error.what());
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, error.what());
  }
}

}  // namespace strata
