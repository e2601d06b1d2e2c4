// How a process ended.
#pragma once

#include <string>
#include <string_view>

namespace strata::launcher {

struct Ending {
  enum class Kind { exited, killed };
  Kind kind = Kind::exited;
  int number = 0;  ///< exit status or signal number

  /// Reads the status word of wait4(2).
  static Ending from_wait_status(int status);

  [[nodiscard]] bool success() const { return kind == Kind::exited && number == 0; }
  /// The exit status, or 128 + signal.
  [[nodiscard]] int exit_code() const;
  /// "exited with code 78 (configuration)", "was killed by signal 9 (SIGKILL)"
  [[nodiscard]] std::string describe() const;

  bool operator==(const Ending&) const = default;
};

/// "SIGTERM"; "signal 77" when it has no name.
std::string signal_name(int number);

/// What an exit code of this project's programs means ("configuration"); empty when it has no
/// meaning.
std::string_view meaning_of_exit_code(int code);

}  // namespace strata::launcher
