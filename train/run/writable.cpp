#include "train/run/writable.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "train/run/model_directory.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

void require_writable_directory(const fs::path& directory, const std::string& for_what) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    throw IoError(directory.string(), 0, for_what, error ? error.value() : ENOTDIR);
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    throw IoError(directory.string(), 0, for_what, errno);
}

void require_writable_file(const std::string& file, const std::string& flag) {
  if (file.empty()) return;
  const fs::path parent = fs::path(file).parent_path();
  if (fs::is_directory(file)) throw IoError(file, 0, flag + " asks for a file there", EISDIR);
  require_writable_directory(parent.empty() ? "." : parent,
                             "cannot create the file of " + flag + " in this directory");
}

void require_writable_output(const TrainOptions& options) {
  if (options.output.empty()) return;
  std::error_code error;
  fs::create_directories(options.output, error);
  if (error)
    throw IoError(options.output, 0, "cannot create the --output directory", error.value());
  require_writable_directory(options.output, "cannot write to the --output directory");
}

}  // namespace

void require_writable(const TrainOptions& options) {
  require_writable_output(options);
  require_writable_file(options.metrics, "--metrics");
  require_writable_file(options.trace, "--trace");
  require_writable_file(options.dump_state, "--dump-state");
}

}  // namespace strata::train
