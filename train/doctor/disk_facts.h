// Measures what a folder offers for offloaded tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/machine.h"

namespace strata::train {

struct DiskFacts {
  std::string path;
  std::string file_system;  ///< "ext4 on /dev/nvme0n1p1"; empty: unknown
  std::int64_t free_bytes = 0;
  bool direct = false;             ///< transfers bypass the page cache
  machine::Disk speed;             ///< unknown rates: too little free space to measure
  std::vector<std::string> notes;  ///< fallbacks that were taken
};

/// Throws IoError naming the folder if offloaded tensors cannot be stored there.
void require_folder(const std::string& path);

/// Measures for about a second; meanwhile uses at most 256 MiB of the folder's space.
DiskFacts measure_disk(const std::string& path);

/// Measures all folders together, striped as in a run.
machine::Disk measure_striped(const std::vector<std::string>& paths);

}  // namespace strata::train
