// The record of a run (record_json) as another process of its user reads it: which mlaunch keeps
// it, and when that was seen last.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/json.h"

namespace strata::launcher {

struct RunRecord {
  std::string run_id;
  std::string host;
  pid_t process = 0;                    ///< of mlaunch
  std::optional<std::int64_t> started;  ///< process_start(); nullopt: not told
  std::string seen_at;                  ///< UTC, as in "2026-11-27T06:11:23Z"
  JsonValue told;                       ///< all of it

  /// True for a process of this host.
  [[nodiscard]] bool is_here() const;
  /// True if the process was one of this host, and is gone. Of another host nobody here knows.
  [[nodiscard]] bool was_killed() const;
  /// Says why the run, which left this record and was not killed, does not answer.
  [[nodiscard]] std::string why_silent() const;
};

/// Reads a record; nullopt: it is broken, as after a loss of power, or says too little.
std::optional<RunRecord> read_record(const std::string& line);

}  // namespace strata::launcher
