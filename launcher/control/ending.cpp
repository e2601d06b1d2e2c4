#include "launcher/control/ending.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <cstring>

#include "core/error.h"

namespace strata::launcher {

Ending Ending::from_wait_status(int status) {
  if (WIFSIGNALED(status)) return {Kind::killed, WTERMSIG(status)};
  return {Kind::exited, WEXITSTATUS(status)};
}

int Ending::exit_code() const {
  return kind == Kind::killed ? static_cast<int>(ExitCode::signal_base) + number : number;
}

std::string Ending::describe() const {
  if (kind == Kind::killed)
    return fmt::format("was killed by signal {} ({})", number, signal_name(number));
  const std::string_view meaning = meaning_of_exit_code(number);
  return fmt::format("exited with code {}{}", number,
                     meaning.empty() ? "" : fmt::format(" ({})", meaning));
}

std::string signal_name(int number) {
  const char* abbreviation = ::sigabbrev_np(number);
  return abbreviation != nullptr ? "SIG" + std::string(abbreviation)
                                 : fmt::format("signal {}", number);
}

std::string_view meaning_of_exit_code(int code) {
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::done:
      return "done";
    case ExitCode::usage:
      return "wrong command line";
    case ExitCode::data:
      return "bad stored data";
    case ExitCode::host:
      return "this machine cannot do it";
    case ExitCode::internal:
      return "internal error";
    case ExitCode::io:
      return "read or write error";
    case ExitCode::try_again:
      return "another rank failed or was lost";
    case ExitCode::configuration:
      return "configuration";
    case ExitCode::do_not_restart:
      return "do not restart";
    case ExitCode::signal_base:
      break;
  }
  return "";
}

}  // namespace strata::launcher
