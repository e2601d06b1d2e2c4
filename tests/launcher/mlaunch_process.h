// Runs mlaunch under test: starts it with pipes, waits with a limit, checks that nothing is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace strata::testing {

/// After this a program hangs, on a busy machine, too. Programs of tests sleep longer.
inline constexpr std::chrono::seconds kHangs{50};

class MlaunchProcess {
 public:
  /// Starts mlaunch with `arguments`. A mark in the environment identifies every process of the
  /// run.
  explicit MlaunchProcess(const std::vector<std::string>& arguments);
  /// Starts a shell that starts mlaunch; `script` finds its path in $0.
  static MlaunchProcess in_shell(const std::string& script);
  /// Kills what is left.
  ~MlaunchProcess();
  MlaunchProcess(const MlaunchProcess&) = delete;
  MlaunchProcess& operator=(const MlaunchProcess&) = delete;

  void send(int signal) const;
  /// Waits until standard output contains `text` `count` times; false if `limit` passes first.
  bool wait_for_output(const std::string& text, int count,
                       std::chrono::milliseconds limit = kHangs);
  /// Waits until standard error contains `text`; false if `limit` passes first.
  bool wait_for_error(const std::string& text, std::chrono::milliseconds limit = kHangs);
  /// Reads to the end and waits. Returns the exit code, 1000 + signal if a signal killed it, or -1
  /// if it did not end within `limit`.
  int wait(std::chrono::milliseconds limit = kHangs);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::vector<std::string> error_lines() const;
  /// Lists living processes of this run, mlaunch included, as "PID name".
  [[nodiscard]] std::vector<std::string> living() const;
  /// Waits until no process of the run lives; false if `limit` passes first.
  [[nodiscard]] bool all_gone(std::chrono::milliseconds limit = kHangs) const;
  /// Waits until all processes of the run are suspended, and reads what they wrote before; false
  /// if this does not come.
  [[nodiscard]] bool all_suspended();

 private:
  MlaunchProcess(const char* program, const std::vector<std::string>& arguments);
  bool read_some(int timeout_ms);
  bool wait_for(const std::string& stream, const std::string& text, int count,
                std::chrono::milliseconds limit);

  std::string mark_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  UniqueFd output_pipe_;
  UniqueFd error_pipe_;
  std::string output_;
  std::string error_;
};

}  // namespace strata::testing
