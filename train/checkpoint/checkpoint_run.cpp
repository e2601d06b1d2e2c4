#include "train/checkpoint/checkpoint_run.h"

#include "core/error.h"
#include "core/file.h"
#include "core/integer.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace strata::train {

std::optional<CheckpointRun> run_of(const Manifest& manifest) {
  const std::string* run_id = manifest.find_fact(kRunIdFact);
  if (run_id == nullptr) return {};
  const std::string* attempt = manifest.find_fact(kAttemptFact);
  const std::int64_t number = attempt != nullptr ? parse_integer(*attempt).value_or(0) : 0;
  return CheckpointRun{*run_id, static_cast<int>(number)};
}

std::optional<CheckpointRun> run_of_checkpoint(FileSystem& files, const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  if (!is_name_taken(path)) return {};
  try {
    return run_of(read_manifest(files, path));
  } catch (const DataError&) {
    return {};
  }
}

}  // namespace strata::train
