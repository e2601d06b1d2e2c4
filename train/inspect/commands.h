// The commands of the program `inspect`: each reads files and returns text for standard output.
#pragma once

#include <functional>
#include <string>

#include "core/file_system.h"

namespace strata::train {

/// Lists the tensors of a folder; with `statistics` also statistics of their values.
std::string list_tensors(FileSystem& files, const std::string& folder, bool statistics,
                         int threads);

/// Reads everything and tells `report` of each damaged place. Then throws DataError if there was
/// any; the message names the newest older checkpoint of the same output folder that is whole.
std::string verify_checkpoint(FileSystem& files, const std::string& folder, int threads,
                              const std::function<void(const std::string& damage)>& report);

struct Comparison {
  std::string text;
  bool same = false;
};
Comparison compare(FileSystem& files, const std::string& a, const std::string& b, int threads);

/// Prints digests as `train --dump-state` does.
std::string digest_tensors(FileSystem& files, const std::string& folder, int threads);

/// Lists the checkpoints of an output folder: step, size, age, whether they are whole. Throws
/// InvalidArgument for a checkpoint.
std::string list_output(FileSystem& files, const std::string& output);

}  // namespace strata::train
