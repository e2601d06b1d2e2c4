#include "launcher/command/program_path.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/nearest_name.h"
#include "core/own_files.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> programs_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (is_executable(it->path()) && it->path().filename() != "mlaunch")
      names.push_back(it->path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void refuse_path(const std::string& name) {
  std::error_code error;
  if (!fs::exists(name, error)) throw InvalidArgument("program " + name + " does not exist");
  if (fs::is_directory(name, error)) throw InvalidArgument(name + " is a directory, not a program");
  const bool is_python = fs::path(name).extension() == ".py";
  throw InvalidArgument(name + " is not executable; " +
                        (is_python ? "start it with: mlaunch -np N python3 " + name
                                   : "chmod +x " + name + ", or start its interpreter"));
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& first_directory,
                              const std::vector<std::string_view>& words) {
  const bool has_folder = !first_directory.empty();
  std::error_code error;
  const bool is_here = fs::exists(name, error) && !fs::is_directory(name, error);
  if (has_folder && is_here && !is_executable(name)) refuse_path("./" + name);
  const std::vector<std::string> names = programs_in(first_directory);
  std::vector<std::string_view> meant(words);
  meant.insert(meant.end(), names.begin(), names.end());
  const std::string close = suggestion(name, meant);
  std::string message =
      "program " + name + " is " +
      (has_folder ? "neither in " + first_directory + " nor in $PATH" : "not in $PATH") + close;
  if (has_folder && is_here) message += "; there is one in this folder: start ./" + name;
  constexpr std::size_t kFewNames = 20;
  if (close.empty() && !names.empty() && names.size() <= kFewNames) {
    message += "; there are:";
    for (const std::string& known : names) message += " " + known;
  }
  throw InvalidArgument(message);
}

}  // namespace

std::string find_program(const std::string& name, const std::string& first_directory,
                         const std::string& search_path,
                         const std::vector<std::string_view>& words) {
  if (name.find('/') != std::string::npos) {
    if (!is_executable(name)) refuse_path(name);
    return name;
  }
  if (name.empty()) throw InvalidArgument("the program's name is empty");
  if (!first_directory.empty() && is_executable(fs::path(first_directory) / name))
    return fs::path(first_directory) / name;
  std::istringstream directories(search_path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const fs::path path = fs::path(directory.empty() ? "." : directory) / name;
    if (is_executable(path)) return path;
  }
  refuse_name(name, first_directory, words);
}

std::string find_program(const std::string& name, const std::vector<std::string_view>& words) {
  const char* search_path = std::getenv("PATH");
  return find_program(name, own_directory(), search_path != nullptr ? search_path : "/usr/bin:/bin",
                      words);
}

}  // namespace strata::launcher
