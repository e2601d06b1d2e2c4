// The folder in which a run keeps its checkpoints: lists, chooses and removes them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "train/checkpoint/checkpoint_commit.h"

namespace strata::train {

struct FoundCheckpoint {
  std::int64_t step = 0;
  std::string path;
};

/// Lists checkpoints, ascending by step, without reading them; none if the folder does not exist.
std::vector<FoundCheckpoint> list_checkpoints(FileSystem& files, const std::string& output);

enum class Verification : std::uint8_t {
  sizes,  ///< the manifest, the headers, and that all files have their sizes
  full,   ///< additionally every byte
};

/// True if an older checkpoint should be tried after this one failed with `error`: it is damaged,
/// or cannot be read from the disk. Other errors (settings, memory, another rank) would also meet
/// an older one.
bool is_unusable(const Error& error);

struct PassedOver {
  std::string path;
  std::string reason;
};

struct NewestCheckpoint {
  std::optional<FoundCheckpoint> found;
  std::vector<PassedOver> refused;  ///< newer ones that were passed over, newest first
};

/// Finds the newest checkpoint before step `before`. Passes over unusable ones, those with NaN or
/// infinite values, and those whose manifest names another step than their folder, which somebody
/// renamed. `run_id`: considers only what this run wrote; empty: all.
NewestCheckpoint newest_checkpoint(FileSystem& files, const std::string& output,
                                   Verification verification,
                                   std::int64_t before = std::numeric_limits<std::int64_t>::max(),
                                   const std::string& run_id = "");

/// True if a checkpoint's manifest says that this run wrote it.
bool is_of_run(FileSystem& files, const std::string& directory, const std::string& run_id);

/// Name of the link in the output folder to the checkpoint that was committed last, for people and
/// for programs that want weights. Resuming looks at the checkpoints themselves.
inline constexpr const char* kLatestName = "latest";

/// Called after a commit: makes `latest` point to this step. After an error or a crash it points to
/// this one or to the one before. Throws IoError.
void point_latest(FileSystem& files, const std::string& output, std::int64_t step);

/// Text that says where to go from a damaged checkpoint: "; the newest older checkpoint that
/// verifies is ..." of the same output folder, which is read completely for it. "" if the name of
/// `directory` is not a checkpoint's.
std::string advice_on_damage(FileSystem& files, const std::string& directory);

/// Removes what interrupted saves and removals left, or puts back what was about to be replaced;
/// returns the names. Call it with the lock held, before anything else.
std::vector<std::string> remove_leftovers(FileSystem& files, const std::string& output);

struct Retention {
  int keep = 0;                 ///< number of newest ones to keep; 0: all
  std::int64_t keep_every = 0;  ///< multiples of this step stay, too; 0: none
};

/// Lists which of the steps, given in any order, `retention` does not keep; never the newest.
std::vector<std::int64_t> steps_to_remove(std::span<const std::int64_t> steps,
                                          const Retention& retention);

/// Called after the commit of `step`: once that is found whole by its sizes, removes what
/// `retention` does not keep among it and earlier ones. But the newest one with finite values
/// stays, whatever its age. Later ones are neither counted nor removed: the run has passed them
/// over, or goes on from before them. Each disappears at once, never in part. Returns the paths.
/// Throws DataError or IoError.
std::vector<std::string> remove_old_checkpoints(FileSystem& files, const std::string& output,
                                                std::int64_t step, const Retention& retention,
                                                const SaveAttempt& attempt);

/// Removes the checkpoints of these steps, each at once, never in part. Returns the paths. Throws
/// IoError.
std::vector<std::string> remove_checkpoints(FileSystem& files, const std::string& output,
                                            std::span<const std::int64_t> steps,
                                            const SaveAttempt& attempt);

}  // namespace strata::train
