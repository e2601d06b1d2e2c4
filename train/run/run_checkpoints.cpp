#include "train/run/run_checkpoints.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <utility>

#include "comm/gather_texts.h"
#include "comm/together.h"
#include "core/error.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/config/settings.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/save_checkpoint.h"
#include "train/engine/step_scalars.h"
#include "train/run/model_directory.h"

namespace strata::train {
namespace {

constexpr std::string_view kProbe = ".strata-probe-";

/// "true" is what transformers' flag says for "the last one".
bool may_choose(const std::string& resume) {
  return same_word(resume, "auto") || same_word(resume, "required") || same_word(resume, "true");
}

/// Of letters, digits, '-' and '_', as names of folders have it: schedulers' ids have dots and
/// more.
std::string plain_tag(std::string run_id) {
  for (char& c : run_id)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
  return run_id;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

RunCheckpoints::RunCheckpoints(const CheckpointOptions& options, const std::string& output,
                               const RankContext& context, comm::Communicator& communicator)
    : options_(options),
      output_(output),
      context_(context),
      run_tag_(plain_tag(context.run_id)),
      communicator_(communicator) {
  if (output_.empty()) return;
  together([&] {
    if (!first()) return;
    prepare_output_folder(files_, output_);
    lock_ = std::make_unique<OutputLock>(
        output_, LockOwner{context_.host, static_cast<std::int64_t>(::getpid()), context_.run_id});
    for (const std::string& name : remove_leftovers(files_, output_))
      std::printf("removed %s/%s, which an interrupted run left\n", output_.c_str(), name.c_str());
    if (!same_word(options_.resume, "never")) return;
    if (const auto found = list_checkpoints(files_, output_); !found.empty())
      throw DataError(output_ + " has checkpoints (the newest is " + found.back().path +
                      "); go on with --resume auto, or name another --output");
  });
  probe_folder();
}

template <typename Body>
void RunCheckpoints::together(const Body& body) {
  const auto failure = comm::together(communicator_, body);
  if (failure)
    throw Error(failure->code, failure->messages[static_cast<std::size_t>(failure->rank)]);
}

std::string RunCheckpoints::from_first(const std::string& text) {
  return comm::gather_texts(communicator_, first() ? text : "").front();
}

/// A folder that only looks the same would hold a part of each checkpoint on each host.
void RunCheckpoints::probe_folder() {
  const std::string probe = output_ + "/" + std::string(kProbe) + run_tag_;
  together([&] {
    if (!first()) return;
    // Those of runs that were killed here: this one has the lock.
    for (const DirectoryEntry& entry : files_.list(output_))
      if (entry.kind == DirectoryEntry::Kind::file && entry.name.starts_with(kProbe))
        files_.remove_file(output_ + "/" + entry.name);
    write_new_file(files_, probe, run_tag_);
  });
  together([&] {
    if (first()) return;
    try {
      (void)files_.open_for_reading(probe, Caching::cached);
    } catch (const IoError&) {
      throw HostError("rank " + std::to_string(context_.rank) + " on " + context_.host +
                      " does not see what rank 0 wrote to " + output_ +
                      "; --output must be a folder that all hosts share");
    }
  });
  together([&] {
    if (first()) files_.remove_file(probe);
  });
}

/// On rank 0: "" for the beginning.
std::string RunCheckpoints::choose() {
  if (!may_choose(options_.resume)) return options_.resume;
  const auto all =
      output_.empty() ? std::vector<FoundCheckpoint>{} : list_checkpoints(files_, output_);
  for (auto candidate = all.rbegin(); candidate != all.rend(); ++candidate) {
    if (damaged_.contains(candidate->path)) continue;
    try {
      const CheckpointReader reader(files_, candidate->path);
      return candidate->path;
    } catch (const Error& error) {
      damaged_.insert(candidate->path);
      reasons_.emplace_back(error.what());
      std::fprintf(stderr, "note: passing over %s: %s\n", candidate->path.c_str(), error.what());
    }
  }
  if (all.empty() && same_word(options_.resume, "auto")) return "";
  std::string message = all.empty()
                            ? (output_.empty() ? "--resume " + options_.resume + " needs --output"
                                               : output_ + " has no checkpoint to resume from")
                            : "no checkpoint of " + output_ + " can be loaded:";
  for (const std::string& reason : reasons_) message += "\n  " + reason;
  throw DataError(message);
}

ResumePoint RunCheckpoints::open(const std::string& directory) {
  const CheckpointReader reader(files_, directory);
  return {directory, parse_trainer_state(reader.whole_file(kTrainerStateName),
                                         directory + "/" + kTrainerStateName)};
}

std::optional<ResumePoint> RunCheckpoints::find_resume_point() {
  if (same_word(options_.resume, "never")) return {};
  std::string directory;
  together([&] {
    if (first()) directory = choose();
  });
  directory = from_first(directory);
  if (directory.empty()) {
    if (first()) std::printf("nothing to resume in %s: starting at step 0\n", output_.c_str());
    return {};
  }
  std::optional<ResumePoint> point;
  together([&] { point = open(directory); });
  return point;
}

ResumePoint RunCheckpoints::load(Engine& engine, ResumePoint point,
                                 std::vector<std::string>& notes) {
  while (true) try {
      together([&] {
        const CheckpointReader reader(files_, point.directory);
        notes = load_checkpoint(engine, reader);
        write_scalars(engine, point.state.scalars, point.directory + "/" + kTrainerStateName);
      });
      return point;
    } catch (const PeerError&) {
      throw;
    } catch (const Error& error) {
      if (!may_choose(options_.resume) || error.exit_code() != ExitCode::data) throw;
      damaged_.insert(point.directory);
      reasons_.emplace_back(error.what());
      if (first())
        std::fprintf(stderr, "note: passing over %s: %s\n", point.directory.c_str(), error.what());
      point = *find_resume_point();
    }
}

bool RunCheckpoints::goes_on_by_itself() const { return may_choose(options_.resume); }

bool RunCheckpoints::is_due(std::int64_t step) {
  if (output_.empty()) return false;
  if (options_.every.steps > 0) return step % options_.every.steps == 0;
  if (options_.every.seconds == 0) return false;
  const bool late = seconds_since(last_save_) >= static_cast<double>(options_.every.seconds);
  return comm::gather_numbers(communicator_, late ? 1 : 0).front() != 0;
}

void RunCheckpoints::remove_old() {
  if (options_.keep == 0) return;
  for (const std::string& path : remove_old_checkpoints(
           files_, output_,
           {.keep = static_cast<int>(options_.keep), .keep_every = options_.keep_every},
           {run_tag_, context_.attempt}))
    std::printf("removed %s\n", path.c_str());
}

void RunCheckpoints::tidy_up(std::int64_t step) {
  try {
    together([&] {
      if (!first()) return;
      point_latest(output_, step);  // before what it points to may go
      remove_old();
    });
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    if (first())
      std::fprintf(stderr, "warning: the checkpoint of step %lld is whole, but: %s\n",
                   static_cast<long long>(step), error.what());
  }
}

std::optional<SavedCheckpoint> RunCheckpoints::save(Engine& engine, const TrainerState& state,
                                                    Facts facts, std::vector<WholeFile> whole_files,
                                                    bool must) {
  const Clock::time_point begin = Clock::now();
  whole_files.push_back({kTrainerStateName, to_text(state)});
  const SaveRequest request{
      output_, state.step, {run_tag_, attempts_++}, std::move(facts), std::move(whole_files)};
  try {
    SavedCheckpoint saved;
    saved.bytes = save_checkpoint(engine, files_, request).bytes;
    tidy_up(state.step);
    last_save_ = Clock::now();
    saved.directory = output_ + "/" + checkpoint_name(state.step);
    saved.seconds = seconds_since(begin);
    return saved;
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    const std::string lost = "the checkpoint of step " + std::to_string(state.step) +
                             " could not be written: " + error.what();
    last_save_ = Clock::now();
    if (must || options_.on_error == SaveFailure::stop)
      throw Error(error.exit_code(), lost + "; earlier checkpoints in " + output_ + " are whole");
    if (first())
      std::fprintf(stderr, "warning: %s; training goes on, earlier checkpoints are whole\n",
                   lost.c_str());
    return {};
  }
}

}  // namespace strata::train
