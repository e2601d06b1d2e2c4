// What the program `inspect` does: each command reads and gives text for standard output.
#pragma once

#include <string>

#include "core/file_system.h"

namespace strata::train {

/// The tensors of a folder; with `statistics` what their values are like.
std::string list_tensors(FileSystem& files, const std::string& folder, bool statistics,
                         int threads);

/// Reads everything. Throws DataError after `report` has been told of each damaged place; the
/// message names the newest older checkpoint of the same output folder that is whole.
std::string verify_checkpoint(FileSystem& files, const std::string& folder, int threads,
                              void (*report)(const std::string& damage));

struct Comparison {
  std::string text;
  bool same = false;
};
Comparison compare(FileSystem& files, const std::string& a, const std::string& b, int threads);

/// Digests as `train --dump-state` prints them.
std::string digest_tensors(FileSystem& files, const std::string& folder, int threads);

/// The checkpoints of an output folder: step, size, age, whether they are whole.
/// Throws InvalidArgument for a checkpoint.
std::string list_output(FileSystem& files, const std::string& output);

}  // namespace strata::train
