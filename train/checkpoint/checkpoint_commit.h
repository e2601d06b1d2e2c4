// A checkpoint appears whole or not at all: prepared in a folder beside it, synced, renamed.
//
// Order over all ranks: rank 0 makes the staging folder and its BlockWriter (creator); barrier; the
// others make theirs (helper); all put and finish; the hashes are gathered; rank 0 commits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/file_system.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {

/// Who writes: one attempt of one run, so that a straggler of an earlier one is never in the way.
struct SaveAttempt {
  std::string run_id;  ///< letters, digits, '_'
  int attempt = 0;
};
/// Throws InvalidArgument for a name or a number that is none of these.
void check_attempt(const SaveAttempt& attempt);

/// "step-00001000"
std::string checkpoint_name(std::int64_t step);
/// The step of such a name; nullopt of any other.
std::optional<std::int64_t> step_of_checkpoint(std::string_view name);

/// Why a folder is no checkpoint: it is being written ("step-00001000.tmp-RUN-3"), about to be
/// removed (".removed-RUN-3"), or makes room for one of the same step (".replaced-RUN-3").
enum class FolderState : std::uint8_t { staging, removed, replaced };
std::string folder_name(std::int64_t step, FolderState state, const SaveAttempt& attempt);
/// The step and state of such a name; nullopt of any other.
struct LeftoverFolder {
  std::int64_t step = 0;
  FolderState state = FolderState::staging;
};
std::optional<LeftoverFolder> parse_folder_name(std::string_view name);

/// Creates the folder for checkpoints with its parents, where they are missing; it survives a
/// crash.
void prepare_output_folder(FileSystem& files, const std::string& output);

/// Creates the empty staging folder; the path.
std::string create_staging_folder(FileSystem& files, const std::string& output, std::int64_t step,
                                  const SaveAttempt& attempt);

/// Rank 0, after every rank's BlockWriter has finished: writes the small files (those of the
/// manifest, with their texts) in their folders and the manifest, syncs, renames. After the return
/// the checkpoint survives a crash of the machine. One of the same step is replaced. On an error
/// (IoError) the checkpoints are those that there were before, and the staging folder is left for
/// abandon or remove_leftovers.
void commit_checkpoint(FileSystem& files, const std::string& output, const Manifest& manifest,
                       std::span<const WholeFile> whole_files, const SaveAttempt& attempt);

/// Removes the staging folder after a failed save, as far as that works.
void abandon_checkpoint(FileSystem& files, const std::string& output, std::int64_t step,
                        const SaveAttempt& attempt) noexcept;

}  // namespace strata::train
