// Exceptions of Strata: one base class; each derived class says who is at fault, and with which
// exit code a program ends.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace strata {

/// Exit codes of all programs (design 2.20). Scripts that start runs again can decide by them.
enum class ExitCode : int {
  done = 0,
  usage = 2,  ///< a flag of the command line is wrong by itself: its name, its value, its place
  data = 65,
  host = 69,
  internal = 70,
  io = 74,
  try_again = 75,
  configuration = 78,  ///< settings contradict one another or the model; a file is wrong or missing
  do_not_restart = 93,
  signal_base = 128,
};

/// Base of all errors. `what()` is one message that names what is at fault and what to change.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

/// The caller or a flag of the command line is wrong by itself, whatever else is given.
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// A file of settings is wrong, and the message names its JSON path; or settings contradict others.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::configuration, message) {}
};

/// Stored data (weights, tokens, a checkpoint) is incomplete, truncated or contradicts itself.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::data, message) {}
};

/// The machine cannot do what was asked (memory, missing library, forbidden system call).
class HostError : public Error {
 public:
  explicit HostError(const std::string& message) : Error(ExitCode::host, message) {}
};

/// A tier has too little memory. Sizes are in bytes.
class OutOfMemory : public HostError {
 public:
  explicit OutOfMemory(const std::string& message) : HostError(message) {}
  OutOfMemory(const std::string& tier, std::uint64_t asked_bytes, std::uint64_t free_bytes,
              const std::string& advice);
};

/// A read or write failed. `error_number` is errno, or 0 for a short transfer.
class IoError : public Error {
 public:
  IoError(const std::string& path, std::uint64_t offset_bytes, const std::string& what_failed,
          int error_number);
};

/// Another rank failed or went silent.
class PeerError : public Error {
 public:
  explicit PeerError(const std::string& message) : Error(ExitCode::try_again, message) {}
};

/// A bug of Strata that a caller can still report. (Broken invariants end the process: check.h.)
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ExitCode::internal, message) {}
};

}  // namespace strata
