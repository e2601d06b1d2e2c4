#include "train/run/resume_source.h"

#include <cstdio>

#include "core/error.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/config/settings.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/step_scalars.h"

namespace strata::train {
namespace {

/// "true" is what transformers' flag says for "the last one".
bool may_choose(const std::string& resume) {
  return same_word(resume, "auto") || same_word(resume, "required") || same_word(resume, "true");
}

}  // namespace

/// On rank 0: "" for the beginning.
std::string ResumeSource::choose() {
  if (!may_choose(options_.resume)) return options_.resume;
  const auto all = folder_.path().empty() ? std::vector<FoundCheckpoint>{}
                                          : list_checkpoints(folder_.files(), folder_.path());
  for (auto candidate = all.rbegin(); candidate != all.rend(); ++candidate) {
    if (damaged_.contains(candidate->path)) continue;
    try {
      const CheckpointReader reader(folder_.files(), candidate->path);
      return candidate->path;
    } catch (const Error& error) {
      damaged_.insert(candidate->path);
      reasons_.emplace_back(error.what());
      std::fprintf(stderr, "note: passing over %s: %s\n", candidate->path.c_str(), error.what());
    }
  }
  if (all.empty() && same_word(options_.resume, "auto")) return "";
  std::string message =
      all.empty() ? (folder_.path().empty() ? "--resume " + options_.resume + " needs --output"
                                            : folder_.path() + " has no checkpoint to resume from")
                  : "no checkpoint of " + folder_.path() + " can be loaded:";
  for (const std::string& reason : reasons_) message += "\n  " + reason;
  throw DataError(message);
}

ResumePoint ResumeSource::open(const std::string& directory) {
  const CheckpointReader reader(folder_.files(), directory);
  return {directory, parse_trainer_state(reader.whole_file(kTrainerStateName),
                                         directory + "/" + kTrainerStateName)};
}

std::optional<ResumePoint> ResumeSource::find() {
  if (same_word(options_.resume, "never")) return {};
  std::string directory;
  folder_.together([&] {
    if (folder_.first()) directory = choose();
  });
  directory = folder_.from_first(directory);
  if (directory.empty()) {
    if (folder_.first())
      std::printf("nothing to resume in %s: starting at step 0\n", folder_.path().c_str());
    return {};
  }
  std::optional<ResumePoint> point;
  folder_.together([&] { point = open(directory); });
  return point;
}

ResumePoint ResumeSource::load(Engine& engine, ResumePoint point, std::vector<std::string>& notes) {
  while (true) try {
      folder_.together([&] {
        const CheckpointReader reader(folder_.files(), point.directory);
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
      if (folder_.first())
        std::fprintf(stderr, "note: passing over %s: %s\n", point.directory.c_str(), error.what());
      point = *find();
    }
}

bool ResumeSource::goes_on_by_itself() const { return may_choose(options_.resume); }

}  // namespace strata::train
