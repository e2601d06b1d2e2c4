#include "train/run/kept_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/name_aside.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/manifest.h"
#include "train/report/report_directory.h"
#include "train/run/beside_weights.h"
#include "train/run/log_sinks.h"
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

/// Adds the place to which the metrics of an earlier run are moved. They may not be there yet: a
/// start after this one finds those of this one.
void add_earlier_metrics(const std::string& metrics, std::vector<NamedFile>& files) {
  std::error_code error;
  const fs::file_status status = fs::status(metrics, error);
  if (metrics.empty() || (fs::exists(status) && !fs::is_regular_file(status))) return;
  files.push_back({"--metrics", name_aside(metrics), metrics});
}

std::vector<NamedFile> files_written(const TrainOptions& options) {
  std::vector<NamedFile> files{
      {"--metrics", options.metrics}, {"--trace", options.trace},
      {"--profile", options.profile}, {"--dump-state", options.dump_state},
      {"--choices", options.choices}, {"--write-plan", options.write_plan}};
  for (const std::string& file : report_files(options.memory_report))
    files.push_back({"--memory-report", file});
  add_earlier_metrics(options.metrics, files);
  return files;
}

/// True for "latest", and for the folders of a checkpoint and of what an interrupted save left.
bool is_of_checkpoints(const std::string& name) {
  return name == kLatestName || step_of_checkpoint(name.substr(0, name.find('.')));
}

fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path full = fs::weakly_canonical(fs::absolute(path, error), error);
  return full.has_filename() ? full : full.parent_path();  // "out/" has none
}

/// Returns the name in `output` of the checkpoint in which a file lies or would lie; "": none.
std::string checkpoint_around(const fs::path& file, const std::string& output) {
  std::error_code error;
  const fs::path outer = resolved(output), full = fs::absolute(file, error);
  // A link lies where it is, and what is written through it lies elsewhere.
  for (const fs::path& inner : {resolved(full), resolved(full.parent_path()) / full.filename()}) {
    const auto [end, name] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
    if (end == outer.end() && name != inner.end() && is_of_checkpoints(name->string()))
      return name->string();
  }
  return "";
}

/// Refuses files in the checkpoints of --output, which the run may read, write and remove.
void refuse_in_checkpoints(const std::vector<NamedFile>& written, const std::string& output) {
  if (output.empty()) return;
  for (const NamedFile& file : written) {
    if (file.path.empty()) continue;
    if (const std::string name = checkpoint_around(file.path, output); !name.empty())
      throw InvalidArgument(
          fmt::format("{} {} would write into {}, which is for checkpoints of --output {} alone; "
                      "name a file elsewhere",
                      file.flag, file.path, (fs::path(output) / name).string(), output));
  }
}

}  // namespace

void keep_inputs(const RunRequest& request, const std::vector<NamedFile>& written) {
  std::vector<NamedFile> files = written;
  for (const NamedFile& file : files_written(request.config.options)) files.push_back(file);
  refuse_overwriting(files, files_read(request));
  for (const LogSink& sink : log_sinks(request.config.options))
    files.push_back({sink.said_by, sink.folder});
  refuse_in_checkpoints(files, request.config.options.output);
}

}  // namespace strata::train
