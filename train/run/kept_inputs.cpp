#include "train/run/kept_inputs.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "train/checkpoint/manifest.h"
#include "train/report/report_directory.h"
#include "train/run/beside_weights.h"
#include "train/run/resume_source.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// Adds a file, or the files of a folder.
template <typename Walk, typename Wanted>
void add(const NamedFile& named, const Wanted& wanted, std::vector<NamedFile>& files) {
  std::error_code error;  // what cannot be read is refused by what reads it
  if (fs::is_regular_file(named.path, error)) files.push_back(named);
  for (Walk at(named.path, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file(error) && wanted(at->path().filename().string()))
      files.push_back({named.flag, at->path().string()});
}

/// Adds a model or a tokenizer, beside whose files others may lie.
void add_model(const NamedFile& named, std::vector<NamedFile>& files) {
  add<fs::directory_iterator>(named, is_model_file, files);
}

/// Adds a checkpoint, to which all files in its folder belong.
void add_checkpoint(const NamedFile& named, std::vector<NamedFile>& files) {
  std::error_code error;  // what is no checkpoint is refused by what resumes
  if (!fs::exists(fs::path(named.path) / kManifestName, error)) return;
  add<fs::recursive_directory_iterator>(
      named, [](std::string_view) { return true; }, files);
}

std::vector<NamedFile> files_read(const RunRequest& request) {
  const TrainOptions& options = request.config.options;
  std::vector<NamedFile> files = request.read;
  for (const std::string& file : options.data) files.push_back({"--data", file});
  files.push_back({"--eval-data", options.eval_data});
  files.push_back({"--plan", options.plan});
  add_model({"--model", options.model}, files);
  add_model({"--tokenizer", options.tokenizer}, files);
  if (!leaves_choice(options.checkpoint.resume))
    add_checkpoint({"--resume", options.checkpoint.resume}, files);
  return files;
}

std::vector<NamedFile> files_written(const TrainOptions& options) {
  std::vector<NamedFile> files{
      {"--metrics", options.metrics}, {"--trace", options.trace},
      {"--profile", options.profile}, {"--dump-state", options.dump_state},
      {"--choices", options.choices}, {"--write-plan", options.write_plan}};
  if (!options.metrics.empty())  // where those of an earlier run go
    files.push_back({"--metrics", options.metrics + ".old"});
  for (const std::string& file : report_files(options.memory_report))
    files.push_back({"--memory-report", file});
  return files;
}

}  // namespace

void keep_inputs(const RunRequest& request, const std::vector<NamedFile>& written) {
  std::vector<NamedFile> files = written;
  for (const NamedFile& file : files_written(request.config.options)) files.push_back(file);
  refuse_overwriting(files, files_read(request));
}

}  // namespace strata::train
