#include "train/run/checkpoint_saver.h"

#include <cstdio>
#include <utility>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/engine/save_checkpoint.h"
#include "train/run/model_directory.h"

namespace strata::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

bool CheckpointSaver::is_due(std::int64_t step) {
  if (folder_.path().empty()) return false;
  if (options_.every.steps > 0) return step % options_.every.steps == 0;
  if (options_.every.seconds == 0) return false;
  const bool late = seconds_since(last_save_) >= static_cast<double>(options_.every.seconds);
  return comm::gather_numbers(folder_.communicator(), late ? 1 : 0).front() != 0;
}

void CheckpointSaver::remove_old() {
  if (options_.keep == 0) return;
  for (const std::string& path : remove_old_checkpoints(
           folder_.files(), folder_.path(),
           {.keep = static_cast<int>(options_.keep), .keep_every = options_.keep_every},
           {folder_.run_tag(), attempts_}))
    std::printf("removed %s\n", path.c_str());
}

void CheckpointSaver::tidy_up(std::int64_t step) {
  try {
    folder_.together([&] {
      if (!folder_.first()) return;
      point_latest(folder_.path(), step);  // before what it points to may go
      remove_old();
    });
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    if (folder_.first())
      std::fprintf(stderr, "warning: the checkpoint of step %lld is whole, but: %s\n",
                   static_cast<long long>(step), error.what());
  }
}

std::optional<SavedCheckpoint> CheckpointSaver::save(Engine& engine, const TrainerState& state,
                                                    Facts facts, std::vector<WholeFile> whole_files,
                                                    bool must) {
  const Clock::time_point begin = Clock::now();
  whole_files.push_back({kTrainerStateName, to_text(state)});
  const SaveRequest request{
      folder_.path(), state.step, {folder_.run_tag(), attempts_++}, std::move(facts), std::move(whole_files)};
  try {
    SavedCheckpoint saved;
    saved.bytes = save_checkpoint(engine, folder_.files(), request).bytes;
    tidy_up(state.step);
    last_save_ = Clock::now();
    saved.directory = folder_.path() + "/" + checkpoint_name(state.step);
    saved.seconds = seconds_since(begin);
    return saved;
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    const std::string lost = "the checkpoint of step " + std::to_string(state.step) +
                             " could not be written: " + error.what();
    last_save_ = Clock::now();
    if (must || options_.on_error == SaveFailure::stop)
      throw Error(error.exit_code(), lost + "; earlier checkpoints in " + folder_.path() + " are whole");
    if (folder_.first())
      std::fprintf(stderr, "warning: %s; training goes on, earlier checkpoints are whole\n",
                   lost.c_str());
    return {};
  }
}

}  // namespace strata::train
