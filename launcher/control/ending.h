// The way in which a process ended.
#pragma once

#include <string>
#include <string_view>

namespace strata::launcher {

struct Ending {
  enum class Kind { exited, killed };
  Kind kind = Kind::exited;
  int number = 0;  ///< exit status or signal number

  /// Decodes the status word of wait4(2).
  static Ending from_wait_status(int status);

  [[nodiscard]] bool success() const { return kind == Kind::exited && number == 0; }
  /// The exit status, or 128 + signal.
  [[nodiscard]] int exit_code() const;
  /// Describes it: "exited with code 78 (configuration)", "was killed by signal 9 (SIGKILL)".
  [[nodiscard]] std::string describe() const;

  bool operator==(const Ending&) const = default;
};

/// Returns "SIGTERM", or "signal 77" if the signal has no name.
std::string signal_name(int number);

/// Returns the meaning of an exit code of this project's programs ("configuration"); "" if it has
/// none.
std::string_view meaning_of_exit_code(int code);

}  // namespace strata::launcher
