#include "train/run/output_folder.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <utility>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/file.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/config/settings.h"

namespace strata::train {
namespace {

constexpr std::string_view kProbe = ".strata-probe-";

/// Names this start of the run: what an earlier start left has another name.
std::string attempt_of(const RankContext& context) {
  return context.attempt == 0 ? context.run_id
                              : fmt::format("{}-attempt-{}", context.run_id, context.attempt);
}

/// Replaces all but letters, digits, '-' and '_' in the name of an attempt by '-', for names of
/// folders: schedulers' ids contain dots and more.
std::string plain_tag(std::string attempt) {
  for (char& c : attempt)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
  return attempt;
}

/// The file system of the part of a path that exists.
std::uint64_t disk_below(const std::string& path) {
  const auto found = find_status(path);
  return found ? found->device : disk_below(parent_directory(path));
}

}  // namespace

OutputFolder::OutputFolder(const CheckpointOptions& options, std::string path,
                           const RankContext& context, comm::Communicator& communicator,
                           const RunListeners& listeners)
    : path_(std::move(path)),
      context_(context),
      run_tag_(plain_tag(attempt_of(context))),
      restart_(restart_of(context)),
      watch_(context.page),
      communicator_(communicator),
      listeners_(listeners) {
  if (path_.empty()) return;
  fail_together([&] {
    if (!first()) return;
    lock_ = make_and_lock();
    disk_ = disk_below(path_);
    for (const std::string& name : remove_leftovers(files_, path_))
      listeners.print("removed " + path_ + "/" + name + ", which an interrupted run left");
    if (same_word(options.resume, "never")) refuse_or_replace(options);
  });
  probe();
  fail_together([&] {
    if (!first()) lock_ = lock();
  });
}

void OutputFolder::refuse_or_replace(const CheckpointOptions& options) {
  std::vector<FoundCheckpoint> found = list_checkpoints(files_, path_);
  const std::size_t own = !restart_ ? 0 : std::erase_if(found, [&](const FoundCheckpoint& one) {
    return is_of_run(files_, one.path, restart_->run_id);
  });
  if (found.empty()) return;
  if (!options.overwrite && own == 0)
    throw InvalidArgument("--output " + path_ + " has checkpoints (the newest is " +
                          found.back().path +
                          "); go on with --resume auto, start anew with --overwrite-output-dir, "
                          "or name another --output");
  if (!options.overwrite) return;
  for (const FoundCheckpoint& checkpoint : found) replaced_.push_back(checkpoint.step);
  listeners_.print(found.back().path +
                   " and older ones go once this run has committed its first checkpoint");
}

/// Tries more than once: another run that made the folder and failed removes it until a lock file
/// is in it.
std::unique_ptr<OutputLock> OutputFolder::make_and_lock() {
  constexpr int kTries = 10;
  for (int tries = 1;; ++tries) {
    try {
      prepare_output_folder(files_, path_);
      return lock();
    } catch (const IoError&) {
      if (tries == kTries) throw;
    }
  }
}

std::unique_ptr<OutputLock> OutputFolder::lock() const {
  if (!first()) return std::make_unique<OutputLock>(OutputLock::join(path_));
  const std::chrono::milliseconds wait =
      restart_ && context_.lock_wait ? *context_.lock_wait : kDyingProcess;
  return std::make_unique<OutputLock>(
      path_, LockOwner{context_.host, static_cast<std::int64_t>(::getpid()), attempt_of(context_)},
      wait, beat_and_tell_of(wait));
}

/// Returns the beat of a wait, which also tells of one that is longer than a killed process needs.
Beat OutputFolder::beat_and_tell_of(std::chrono::milliseconds wait) const {
  const auto tell_at = std::chrono::steady_clock::now() + kDyingProcess;
  return Beat([this, wait, tell_at, told = false, beat = watch_.beat()]() mutable {
    beat();
    if (told || std::chrono::steady_clock::now() < tell_at) return;
    told = true;
    listeners_.print(fmt::format(
        "waiting up to {} s for ranks of an earlier attempt to let go of {}: a host that is gone "
        "may hold its lock for a time",
        std::chrono::ceil<std::chrono::seconds>(wait).count(), path_));
  });
}

std::string OutputFolder::from_first(const std::string& text) {
  return comm::gather_texts(communicator_, first() ? text : "").front();
}

void OutputFolder::make_again_if_gone(Place place) {
  bool gone = false;
  fail_together([&] {
    gone = first() && (!lock_ || !lock_->is_in_place());
    if (gone && place == Place::same_disk) require_same_disk();
  });
  if (from_first(gone ? "gone" : "").empty()) return;
  // Locks that ranks still hold would be in the way if it were the same folder after all.
  fail_together([&] { lock_.reset(); });
  fail_together([&] {
    if (first()) make_again();
  });
  probe();
  fail_together([&] {
    if (!first()) lock_ = lock();
  });
}

void OutputFolder::require_same_disk() const {
  if (disk_below(path_) != disk_)
    throw IoError(path_, 0,
                  "leads to another disk than when the run began; mount what was there again, or "
                  "move the folder back",
                  0);
}

void OutputFolder::make_again() {
  const std::uint64_t disk = disk_below(path_);
  const bool is_new = !find_status(path_);
  lock_ = make_and_lock();
  replaced_.clear();  // they are gone
  listeners_.warn(path_ +
                  (is_new ? " was gone, with what lay in it, and is made anew"
                          : " was replaced by another folder, where this run goes on") +
                  (disk == disk_ ? "" : "; it lies on another disk than before"));
  disk_ = disk;
}

/// Throws if hosts see different folders at the path: each would hold a part of each checkpoint.
void OutputFolder::probe() {
  const std::string file = path_ + "/" + std::string(kProbe) + run_tag_;
  fail_together([&] {
    if (!first()) return;
    // Removes probes of runs that were killed here; this run has the lock, so none is in use.
    for (const DirectoryEntry& entry : files_.list(path_))
      if (entry.kind == DirectoryEntry::Kind::file && entry.name.starts_with(kProbe))
        files_.remove_file(path_ + "/" + entry.name);
    write_new_file(files_, file, run_tag_);
  });
  std::string unseen;
  fail_together([&] {
    if (first()) return;
    try {
      (void)files_.open_for_reading(file, Caching::cached);
    } catch (const IoError&) {
      unseen = fmt::format(
          "rank {} on {} does not see what rank 0 wrote to {}; --output must be a folder that all "
          "hosts share, and here it is {}",
          context_.rank, context_.host, path_, std::filesystem::absolute(path_).string());
    }
  });
  fail_together([&] {  // all ranks have looked for the probe
    if (first()) files_.remove_file(file);
    if (!unseen.empty()) throw HostError(unseen);
  });
}

}  // namespace strata::train
