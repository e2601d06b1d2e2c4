// fio on a file that this process has open.
#pragma once

#include <cstdint>
#include <string>

namespace strata::bench {

enum class FioMode : std::uint8_t { read, write, mixed };

struct FioJob {
  std::int64_t bytes = 0;  ///< of the file, all of which is transferred
  std::int64_t block = 1 << 20;
  int depth = 16;
};

/// io_uring with fixed buffers and files, O_DIRECT, huge pages by glibc's tunable. "mixed": one
/// thread reads the first half while another writes the second, with the depth shared.
std::string fio_command(const FioJob& job, int file, FioMode mode);

/// Bytes per second by fio's own clock; 0 where it is not installed.
double run_fio(const FioJob& job, int file, FioMode mode);

}  // namespace strata::bench
