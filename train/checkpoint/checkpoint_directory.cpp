#include "train/checkpoint/checkpoint_directory.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/checkpoint_run.h"

namespace strata::train {
namespace {

constexpr const char* kNewLatestName = "latest.tmp";

std::vector<DirectoryEntry> folders_in(FileSystem& files, const std::string& output) {
  if (!find_status(output)) return {};
  std::vector<DirectoryEntry> entries = files.list(output);
  std::erase_if(entries, [](const DirectoryEntry& entry) {
    return entry.kind != DirectoryEntry::Kind::directory;
  });
  return entries;
}

/// True if a checkpoint has all files at their sizes and its manifest records no NaN or infinity.
bool is_finite(FileSystem& files, const std::string& path) {
  try {
    return CheckpointReader(files, path).manifest().find_fact(kNotFiniteFact) == nullptr;
  } catch (const Error& error) {
    if (!is_unusable(error)) throw;
    return false;
  }
}

/// Takes the newest checkpoint with finite values out of `old`, unless a later one that stays also
/// has finite values. `steps` and `old` are ascending.
void spare_newest_finite(FileSystem& files, const std::string& output,
                         std::span<const std::int64_t> steps, std::vector<std::int64_t>& old) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!is_finite(files, output + "/" + checkpoint_name(*step))) continue;
    std::erase(old, *step);
    return;
  }
}

/// Removes a file; returns false if there is none of this name.
bool remove_if_there(FileSystem& files, const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (!is_name_taken(path)) return false;
  files.remove_file(path);
  return true;
}

}  // namespace

std::vector<FoundCheckpoint> list_checkpoints(FileSystem& files, const std::string& output) {
  std::vector<FoundCheckpoint> found;
  for (const DirectoryEntry& entry : folders_in(files, output))
    if (const auto step = step_of_checkpoint(entry.name))
      found.push_back({*step, output + "/" + entry.name});
  std::sort(found.begin(), found.end(),
            [](const FoundCheckpoint& a, const FoundCheckpoint& b) { return a.step < b.step; });
  return found;
}

bool is_unusable(const Error& error) {
  return error.exit_code() == ExitCode::data || error.exit_code() == ExitCode::io;
}

NewestCheckpoint newest_checkpoint(FileSystem& files, const std::string& output,
                                   Verification verification, std::int64_t before,
                                   const std::string& run_id) {
  NewestCheckpoint newest;
  auto all = list_checkpoints(files, output);
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (it->step >= before) continue;
    try {
      if (!run_id.empty() && !is_of_run(files, it->path, run_id)) continue;
      const CheckpointReader reader(files, it->path);
      if (reader.manifest().step != it->step)
        throw DataError(
            fmt::format("{}: its manifest is of step {}; give the folder back the name "
                        "that it was saved under",
                        it->path, reader.manifest().step));
      if (const std::string* what = reader.manifest().find_fact(kNotFiniteFact))
        throw DataError(it->path + ": is not finite: " + *what + "; name it to go on from it");
      if (verification == Verification::full) reader.verify();
      newest.found = *it;
      return newest;
    } catch (const Error& error) {
      if (!is_unusable(error)) throw;
      newest.refused.push_back({it->path, error.what()});
    }
  }
  return newest;
}

bool is_of_run(FileSystem& files, const std::string& directory, const std::string& run_id) {
  const auto run = run_of_checkpoint(files, directory);
  return run && run->run_id == run_id;
}

std::string advice_on_damage(FileSystem& files, const std::string& directory) {
  // Resolves a name such as ".", which does not contain the folder's name.
  const std::string path = std::filesystem::weakly_canonical(directory).string();
  const auto step = step_of_checkpoint(std::filesystem::path(path).filename().string());
  if (!step) return "";
  const std::string output = parent_directory(path);
  const NewestCheckpoint older = newest_checkpoint(files, output, Verification::full, *step);
  if (older.found) return "; the newest older checkpoint that verifies is " + older.found->path;
  const std::size_t refused = older.refused.size();
  if (refused == 0) return "; there is no older checkpoint in " + output;
  return fmt::format("; none of the {} older checkpoint{} in {} verifies, either", refused,
                     refused == 1 ? "" : "s", output);
}

void point_latest(FileSystem& files, const std::string& output, std::int64_t step) {
  const std::string fresh = output + "/" + kNewLatestName;
  remove_if_there(files, output, kNewLatestName);  // left by an earlier failure
  files.make_link(checkpoint_name(step), fresh);
  files.sync_directory(output);  // the link must be on the disk before it gets its final name
  files.rename(fresh, output + "/" + kLatestName);
  files.sync_directory(output);  // the caller may remove the previous checkpoint next
}

std::vector<std::string> remove_leftovers(FileSystem& files, const std::string& output) {
  std::vector<std::string> names;
  if (remove_if_there(files, output, kNewLatestName)) names.emplace_back(kNewLatestName);
  const auto folders = folders_in(files, output);
  for (const DirectoryEntry& entry : folders) {
    const auto leftover = parse_folder_name(entry.name);
    if (!leftover) continue;
    const std::string path = output + "/" + entry.name;
    const std::string target = output + "/" + checkpoint_name(leftover->step);
    // The rename that was to follow did not happen: the folder moved aside still is the checkpoint.
    if (leftover->state == FolderState::replaced && !find_status(target))
      files.rename(path, target);
    else
      remove_tree(files, path);
    names.push_back(entry.name);
  }
  return names;
}

std::vector<std::int64_t> steps_to_remove(std::span<const std::int64_t> steps,
                                          const Retention& retention) {
  std::vector<std::int64_t> sorted(steps.begin(), steps.end());
  std::sort(sorted.begin(), sorted.end());
  if (retention.keep <= 0) return {};
  const auto kept = std::min(sorted.size(), static_cast<std::size_t>(retention.keep));
  sorted.resize(sorted.size() - kept);
  if (retention.keep_every > 0)
    std::erase_if(sorted, [&](std::int64_t step) { return step % retention.keep_every == 0; });
  return sorted;
}

std::vector<std::string> remove_old_checkpoints(FileSystem& files, const std::string& output,
                                                std::int64_t step, const Retention& retention,
                                                const SaveAttempt& attempt) {
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : list_checkpoints(files, output))
    if (found.step <= step) steps.push_back(found.step);
  std::vector<std::int64_t> old = steps_to_remove(steps, retention);
  if (old.empty()) return {};
  { const CheckpointReader newest(files, output + "/" + checkpoint_name(step)); }
  spare_newest_finite(files, output, steps, old);
  return remove_checkpoints(files, output, old, attempt);
}

std::vector<std::string> remove_checkpoints(FileSystem& files, const std::string& output,
                                            std::span<const std::int64_t> steps,
                                            const SaveAttempt& attempt) {
  std::vector<std::string> removed;
  for (const std::int64_t step : steps) {
    removed.push_back(output + "/" + checkpoint_name(step));
    files.rename(removed.back(), output + "/" + folder_name(step, FolderState::removed, attempt));
  }
  // Syncs first, since a crash could otherwise bring back a name whose files are gone.
  files.sync_directory(output);
  for (const std::int64_t step : steps)
    remove_tree(files, output + "/" + folder_name(step, FolderState::removed, attempt));
  return removed;
}

}  // namespace strata::train
