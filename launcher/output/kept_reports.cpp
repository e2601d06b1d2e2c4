#include "launcher/output/kept_reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/new_folders.h"
#include "core/run_id.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

bool is_absolute(const char* path) { return path != nullptr && path[0] == '/'; }

}  // namespace

std::string KeptReports::place(const Environment& environment) {
  if (environment.chosen != nullptr && environment.chosen[0] != '\0') return environment.chosen;
  if (is_absolute(environment.state)) return std::string(environment.state) + "/strata/runs";
  if (is_absolute(environment.home))
    return std::string(environment.home) + "/.local/state/strata/runs";
  return "";
}

std::string KeptReports::place() {
  return place(
      {std::getenv("STRATA_RUNS_DIR"), std::getenv("XDG_STATE_HOME"), std::getenv("HOME")});
}

std::string KeptReports::folder_of(const std::string& run_id) const {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(place_) / run_id;
  return !place_.empty() && std::filesystem::is_directory(folder, error) ? folder.string() : "";
}

std::string KeptReports::path_of(const std::string& run_id, const std::string& name) const {
  std::error_code error;
  return place_.empty() ? "" : (fs::absolute(place_, error) / run_id / name).string();
}

void KeptReports::keep(const std::string& run_id, const std::string& name,
                       const std::string& text) const {
  if (place_.empty()) return;
  std::error_code error;
  if (!fs::exists(fs::path(place_) / run_id, error)) make_room();
  const std::string file = path_of(run_id, name);
  const std::string folder = fs::path(file).parent_path().string();
  NewFolders folders(0700);
  if (const std::error_code failed = folders.make(folder))
    throw HostError(
        fmt::format("cannot make the folder {}: {}", folder, std::strerror(failed.value())));
  folders.keep();
  write_file_atomically(file, text);
}

/// Removes the oldest runs that have ended, so that one more may come. Where nobody knows which
/// have, all stay.
void KeptReports::make_room() const {
  std::vector<std::string> living;
  try {
    if (living_) living = living_();
  } catch (const HostError&) {
    return;
  }
  std::vector<std::pair<fs::file_time_type, fs::path>> runs;
  std::error_code error;
  for (fs::directory_iterator it(place_, error), end; it != end; it.increment(error)) {
    const std::string run_id = it->path().filename().string();
    if (!is_run_id(run_id) || it->is_symlink(error)) continue;
    if (std::ranges::find(living, run_id) != living.end()) continue;
    const fs::file_time_type changed = it->last_write_time(error);
    if (!error) runs.emplace_back(changed, it->path());
  }
  std::ranges::sort(runs);
  for (std::size_t i = 0; i + kMostRuns <= runs.size(); ++i) fs::remove_all(runs[i].second, error);
}

}  // namespace strata::launcher
