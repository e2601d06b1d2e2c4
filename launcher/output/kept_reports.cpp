#include "launcher/output/kept_reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdLength = 16;

bool is_absolute(const char* path) { return path != nullptr && path[0] == '/'; }

/// True for the names of folders that this class makes: ids of runs.
bool is_run_id(const std::string& name) {
  return name.size() == kIdLength &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Makes a folder and those above it, which only their user may enter.
void make_folders(const fs::path& folder) {
  std::error_code error;
  for (fs::path path; const fs::path& part : folder) {
    path /= part;
    if (!fs::create_directory(path, error)) {
      if (!error) continue;  // it was there
      break;
    }
    fs::permissions(path, fs::perms::owner_all, error);
    if (error) break;
  }
  if (error)
    throw HostError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
}

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

std::string KeptReports::keep(const std::string& run_id, const std::string& name,
                              const std::string& text) const {
  if (place_.empty()) return "";
  const fs::path run = fs::absolute(place_) / run_id;
  if (!fs::exists(run)) make_room();
  const fs::path file = run / name;
  make_folders(file.parent_path());
  write_file_atomically(file.string(), text);
  return file.string();
}

/// Removes the oldest runs, so that one more may come.
void KeptReports::make_room() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> runs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(place_, error)) {
    if (!is_run_id(entry.path().filename().string()) || entry.is_symlink(error)) continue;
    const fs::file_time_type changed = entry.last_write_time(error);
    if (!error) runs.emplace_back(changed, entry.path());
  }
  std::ranges::sort(runs);
  for (std::size_t i = 0; i + kMostRuns <= runs.size(); ++i) fs::remove_all(runs[i].second, error);
}

}  // namespace strata::launcher
