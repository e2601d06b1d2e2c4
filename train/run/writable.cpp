#include "train/run/writable.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/link_target.h"
#include "core/unique_fd.h"
#include "train/files/model_files.h"
#include "train/report/report_directory.h"
#include "train/run/log_sinks.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutput = "the --output directory";

/// True if `path` exists and is `folder` or lies in it, links followed.
bool lies_in(const std::string& path, const std::string& folder) {
  std::error_code error;
  if (!fs::exists(path, error) || !fs::exists(folder, error)) return false;
  const fs::path inner = fs::canonical(path, error), outer = fs::canonical(folder, error);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void make_sink(const LogSink& sink, NewFolders& folders) {
  folders.make_writable(sink.folder, "the folder of " + sink.said_by);
}

/// Opens a file that exists; else makes one, writes a byte (a full disk has no room), removes it.
void try_file(const std::string& file, const std::string& flag) {
  std::error_code unknown;
  if (file.empty() || fs::is_other(file, unknown)) return;  // a pipe, a device
  const std::string target = link_target(file);  // a link may lead to what is not there yet
  UniqueFd made(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (made.valid()) {
    const int error = ::write(made.get(), "\n", 1) == 1 ? 0 : errno;
    ::unlink(target.c_str());
    if (error != 0) throw IoError(file, 0, "cannot write the file of " + flag, error);
    return;
  }
  const bool exists = errno == EEXIST;
  if (!exists || !UniqueFd(::open(file.c_str(), O_WRONLY | O_CLOEXEC)).valid())
    throw IoError(file, 0, "cannot write the file of " + flag, errno);
}

}  // namespace

void require_output(const TrainOptions& options) {
  if (options.output.empty()) return;
  if (ModelFiles::has_weights(options.output))  // a run's own weights lie in its step-... folders
    throw InvalidArgument(
        "--output " + options.output +
        " has the weights of a model in it, which every program would read instead of "
        "what is trained; name another --output");
  if (options.checkpoint.overwrite && lies_in(options.model, options.output))
    throw InvalidArgument("--overwrite-output-dir would remove --model " + options.model +
                          ", which lies in --output " + options.output + "; name another --output");
  std::error_code unknown;
  if (!fs::exists(options.output, unknown)) return;
  if (const int reason = why_not_writable(options.output); reason != 0 && reason != ENOENT)
    throw IoError(options.output, 0, std::string("cannot write to ") + kOutput, reason);
}

void require_writable_file(const std::string& file, const std::string& flag) {
  if (file.empty()) return;
  const fs::path parent = fs::path(file).parent_path();
  if (fs::is_directory(file)) throw IoError(file, 0, flag + " asks for a file there", EISDIR);
  const std::string directory = parent.empty() ? "." : parent.string();
  if (const int reason = why_not_writable(directory); reason != 0)
    throw IoError(directory, 0, "cannot create the file of " + flag + " in this directory", reason);
}

void try_writing(const TrainOptions& options, NewFolders& folders) {
  try_file(options.metrics, "--metrics");
  try_file(options.trace, "--trace");
  try_file(options.profile, "--profile");
  try_file(options.dump_state, "--dump-state");
  try_file(options.write_plan, "--write-plan");
  require_report_directory(options.memory_report, folders);
  for (const std::string& file : report_files(options.memory_report))
    try_file(file, "--memory-report");
  for (const LogSink& sink : log_sinks(options)) {
    make_sink(sink, folders);
    try_file((fs::path(sink.folder) / ".strata-trial").string(), sink.said_by);
  }
}

void require_writable(const TrainOptions& options, NewFolders& folders) {
  require_output(options);
  if (!options.output.empty()) folders.make_writable(options.output, kOutput);
  require_report_directory(options.memory_report, folders);
  require_writable_file(options.metrics, "--metrics");
  require_writable_file(options.trace, "--trace");
  require_writable_file(options.profile, "--profile");
  require_writable_file(options.dump_state, "--dump-state");
  require_writable_file(options.write_plan, "--write-plan");
  for (const LogSink& sink : log_sinks(options)) make_sink(sink, folders);
}

}  // namespace strata::train
