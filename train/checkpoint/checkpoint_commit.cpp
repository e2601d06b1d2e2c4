#include "train/checkpoint/checkpoint_commit.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/file.h"
#include "core/integer.h"
#include "train/checkpoint/checkpoint_run.h"

namespace strata::train {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kStepDigits = 8;
constexpr std::array<std::pair<FolderState, std::string_view>, 3> kSuffixes{
    {{FolderState::staging, ".tmp-"},
     {FolderState::removed, ".removed-"},
     {FolderState::replaced, ".replaced-"}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_tag_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/// Throws PeerError if a checkpoint of the same step was written by a later attempt of the same
/// run: then this process should have ended.
void refuse_to_replace_later(FileSystem& files, const std::string& output,
                             const Manifest& manifest) {
  const std::string target = output + "/" + checkpoint_name(manifest.step);
  const auto mine = run_of(manifest);
  if (!mine || !is_name_taken(target)) return;
  const auto theirs = run_of_checkpoint(files, target);
  if (theirs && theirs->run_id == mine->run_id && theirs->attempt > mine->attempt)
    throw PeerError(
        fmt::format("{}: written by attempt {} of this run, so attempt {} must not replace it",
                    target, theirs->attempt, mine->attempt));
}

/// Makes the checkpoint visible by renaming; undoes the renames if their sync fails.
void publish(FileSystem& files, const std::string& output, std::int64_t step,
             const SaveAttempt& attempt) {
  const std::string staging = output + "/" + folder_name(step, FolderState::staging, attempt);
  const std::string target = output + "/" + checkpoint_name(step);
  const std::string aside = output + "/" + folder_name(step, FolderState::replaced, attempt);
  const bool replaces = is_name_taken(target);
  bool moved_aside = false;
  bool renamed = false;
  try {
    if (replaces) files.rename(target, aside);
    moved_aside = replaces;
    files.rename(staging, target);
    renamed = true;
    files.sync_directory(output);
  } catch (const IoError&) {
    // The names may or may not be on the disk, so this restores what was there before.
    try {
      if (renamed) files.rename(target, staging);
      if (moved_aside) files.rename(aside, target);
    } catch (const IoError&) {  // the first error is the one to report
    }
    throw;
  }
  if (!moved_aside) return;
  try {
    remove_tree(files, aside);
  } catch (const IoError&) {  // the checkpoint is committed; remove_leftovers tries again
  }
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  STRATA_CHECK(step >= 0, step);
  return fmt::format("{}{:0{}}", kPrefix, step, kStepDigits);
}

std::optional<std::int64_t> step_of_checkpoint(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  const auto step = parse_integer(digits);
  // A number must be written in the one usual way, so that two names never mean one step.
  if (!step || checkpoint_name(*step) != name) return std::nullopt;
  return step;
}

void check_attempt(const SaveAttempt& attempt) {
  if (attempt.run_id.empty() || attempt.attempt < 0 ||
      !std::all_of(attempt.run_id.begin(), attempt.run_id.end(), is_tag_character))
    throw InvalidArgument(
        fmt::format("a save of run '{}', attempt {}; expected a name of letters, digits and '_' "
                    "(run_id), and an attempt from 0 on",
                    attempt.run_id, attempt.attempt));
}

std::string folder_name(std::int64_t step, FolderState state, const SaveAttempt& attempt) {
  check_attempt(attempt);
  for (const auto& [known, suffix] : kSuffixes)
    if (known == state)
      return fmt::format("{}{}{}-{}", checkpoint_name(step), suffix, attempt.run_id,
                         attempt.attempt);
  STRATA_CHECK(false, step);
}

std::optional<LeftoverFolder> parse_folder_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  const auto step = step_of_checkpoint(name.substr(0, dot));
  if (!step || dot == std::string_view::npos) return std::nullopt;
  for (const auto& [state, suffix] : kSuffixes) {
    if (!name.substr(dot).starts_with(suffix)) continue;
    const std::string_view tag = name.substr(dot + suffix.size());
    const std::size_t dash = tag.rfind('-');
    if (dash == 0 || dash == std::string_view::npos || dash + 1 == tag.size() ||
        !std::all_of(tag.begin(), tag.end(), is_tag_character) ||
        !std::all_of(tag.begin() + static_cast<std::ptrdiff_t>(dash) + 1, tag.end(), is_digit))
      return std::nullopt;
    return LeftoverFolder{*step, state};
  }
  return std::nullopt;
}

void prepare_output_folder(FileSystem& files, const std::string& output) {
  if (const auto found = find_status(output); found && found->is_directory) return;
  const std::string parent = parent_directory(output);
  prepare_output_folder(files, parent);
  files.make_directory(output);
  files.sync_directory(parent);
}

std::string create_staging_folder(FileSystem& files, const std::string& output, std::int64_t step,
                                  const SaveAttempt& attempt) {
  std::string path = output + "/" + folder_name(step, FolderState::staging, attempt);
  files.make_directory(path);
  return path;
}

void commit_checkpoint(FileSystem& files, const std::string& output, const Manifest& manifest,
                       std::span<const WholeFile> whole_files, const SaveAttempt& attempt,
                       const std::function<void()>& before_renames) {
  STRATA_CHECK(whole_files.size() == manifest.whole_files.size());
  const std::string staging =
      output + "/" + folder_name(manifest.step, FolderState::staging, attempt);
  std::set<std::string> folders{staging};
  for (const WholeFile& file : whole_files) {
    STRATA_CHECK(manifest.find_whole_file(file.name) != nullptr, file.name);
    const std::string path = staging + "/" + file.name;
    if (const auto [folder, is_new] = folders.insert(parent_directory(path)); is_new)
      files.make_directory(*folder);
    write_new_file(files, path, file.text);
  }
  write_new_file(files, staging + "/" + kManifestName, to_text(manifest));
  for (const std::string& folder : folders) files.sync_directory(folder);
  refuse_to_replace_later(files, output, manifest);
  if (before_renames) before_renames();
  publish(files, output, manifest.step, attempt);
}

void abandon_checkpoint(FileSystem& files, const std::string& output, std::int64_t step,
                        const SaveAttempt& attempt) noexcept {
  try {
    remove_tree(files, output + "/" + folder_name(step, FolderState::staging, attempt));
  } catch (const IoError&) {  // remove_leftovers of the next start tries again
  }
}

}  // namespace strata::train
