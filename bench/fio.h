// Runs fio on a file that this process has open.
#pragma once

#include <cstdint>
#include <string>

namespace strata::bench {

enum class FioMode : std::uint8_t { read, write, mixed };

struct FioJob {
  std::int64_t bytes = 0;  ///< size of the file; all of it is transferred
  std::int64_t block = 1 << 20;
  int depth = 16;
};

/// Builds a command: io_uring, fixed buffers and files, O_DIRECT, huge pages by glibc's tunable.
/// "mixed": one thread reads the first half while another writes the second; they share the depth.
std::string fio_command(const FioJob& job, int file, FioMode mode);

/// Returns bytes per second by fio's own clock, or 0 if fio is not installed.
double run_fio(const FioJob& job, int file, FioMode mode);

}  // namespace strata::bench
