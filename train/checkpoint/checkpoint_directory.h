// The folder in which a run keeps its checkpoints: which there are, which to load, which to remove.
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

/// Ascending by step, unread. A folder that does not exist has none.
std::vector<FoundCheckpoint> list_checkpoints(FileSystem& files, const std::string& output);

enum class Verification : std::uint8_t {
  sizes,  ///< manifest, headers, and that all files are there at their sizes
  full,   ///< and every byte
};

/// Whether a checkpoint that failed with `error` is passed over where an older one will do: it is
/// damaged, or the disk does not give it back. Anything else (settings, memory, another rank) would
/// meet the older one, too.
bool is_unusable(const Error& error);

struct PassedOver {
  std::string path;
  std::string reason;
};

struct NewestCheckpoint {
  std::optional<FoundCheckpoint> found;
  std::vector<PassedOver> refused;  ///< newer ones, newest first
};

/// The last before step `before`. Passes over unusable ones, those whose values are not finite,
/// and those whose manifest is of another step than their name: somebody renamed them.
NewestCheckpoint newest_checkpoint(FileSystem& files, const std::string& output,
                                   Verification verification,
                                   std::int64_t before = std::numeric_limits<std::int64_t>::max());

/// The link in the output folder that says which checkpoint was committed last: for people and for
/// programs that want weights. Resuming looks at the checkpoints themselves.
inline constexpr const char* kLatestName = "latest";

/// After a commit: `latest` says this step. On an error, or after a crash, it says this one or what
/// it said before. Throws IoError.
void point_latest(FileSystem& files, const std::string& output, std::int64_t step);

/// Where to go from a damaged checkpoint: "; the newest older checkpoint that verifies is ..." of
/// the same output folder, which is read wholly to know that. "" when the name of `directory` does
/// not say that it is a checkpoint.
std::string advice_on_damage(FileSystem& files, const std::string& directory);

/// Removes what interrupted saves and removals left, or puts back what was to be replaced: with the
/// lock held, before anything else. Names of what was removed or put back.
std::vector<std::string> remove_leftovers(FileSystem& files, const std::string& output);

struct Retention {
  int keep = 0;                 ///< the newest; 0: all
  std::int64_t keep_every = 0;  ///< and those whose step is a multiple; 0: none
};

/// Which of the steps, in any order, `retention` gives up. Never the newest.
std::vector<std::int64_t> steps_to_remove(std::span<const std::int64_t> steps,
                                          const Retention& retention);

/// After the commit of `step`: removes what `retention` gives up of it and those before, once it
/// has been found whole by its sizes; but the newest one with finite values stays, whatever its
/// age. Later ones are neither counted nor removed: the run has passed them over, or goes on from
/// before them. Each disappears at once, never in part. The paths. Throws DataError or IoError.
std::vector<std::string> remove_old_checkpoints(FileSystem& files, const std::string& output,
                                                std::int64_t step, const Retention& retention,
                                                const SaveAttempt& attempt);

/// Removes the checkpoints of these steps, each at once, never in part. The paths. Throws IoError.
std::vector<std::string> remove_checkpoints(FileSystem& files, const std::string& output,
                                            std::span<const std::int64_t> steps,
                                            const SaveAttempt& attempt);

}  // namespace strata::train
