// Makes a checkpoint appear whole or not at all: it is prepared in a staging folder, synced,
// and renamed.
//
// Order over all ranks: rank 0 makes the staging folder and its BlockWriter (creator); barrier; the
// others make theirs (helper); all put and finish; the hashes are gathered; rank 0 commits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/file_system.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {

/// Identifies an attempt of a run, so that ranks left of an earlier one never interfere.
struct SaveAttempt {
  std::string run_id;  ///< letters, digits, '_'
  int attempt = 0;
};
/// Throws InvalidArgument for a run_id or attempt that is not allowed.
void check_attempt(const SaveAttempt& attempt);

/// "step-00001000"
std::string checkpoint_name(std::int64_t step);
/// The step that such a name says; nullopt for any other name.
std::optional<std::int64_t> step_of_checkpoint(std::string_view name);

/// The reason for which a folder is no checkpoint: it is being written ("step-00001000.tmp-RUN-3"),
/// is about to be removed (".removed-RUN-3"), or has made way for another of the same step
/// (".replaced-RUN-3").
enum class FolderState : std::uint8_t { staging, removed, replaced };
std::string folder_name(std::int64_t step, FolderState state, const SaveAttempt& attempt);
/// The step and state that such a name says; nullopt for any other name.
struct LeftoverFolder {
  std::int64_t step = 0;
  FolderState state = FolderState::staging;
};
std::optional<LeftoverFolder> parse_folder_name(std::string_view name);

/// Creates the folder for checkpoints and missing parents, so that they survive a crash.
void prepare_output_folder(FileSystem& files, const std::string& output);

/// Creates the empty staging folder and returns its path.
std::string create_staging_folder(FileSystem& files, const std::string& output, std::int64_t step,
                                  const SaveAttempt& attempt);

/// Called on rank 0 when every rank's BlockWriter has finished: writes the small files (those of
/// the manifest, with their texts) and the manifest, syncs, renames. After it returns, the
/// checkpoint survives a crash of the machine. Replaces an older one of the same step, but throws
/// PeerError if a later attempt of the same run wrote it (checkpoint_run.h). On an error (IoError)
/// the older checkpoints are as before, and the staging folder is left for abandon_checkpoint or
/// remove_leftovers. `before_renames` is called when all is written, right before the renames; if
/// it throws, nothing is renamed. May be empty.
void commit_checkpoint(FileSystem& files, const std::string& output, const Manifest& manifest,
                       std::span<const WholeFile> whole_files, const SaveAttempt& attempt,
                       const std::function<void()>& before_renames = {});

/// Removes the staging folder of a failed save; ignores errors.
void abandon_checkpoint(FileSystem& files, const std::string& output, std::int64_t step,
                        const SaveAttempt& attempt) noexcept;

}  // namespace strata::train
