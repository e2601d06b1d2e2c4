#include "launcher/command/train_arguments.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "launcher/command/program_output.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::seconds kLimit{2};

}  // namespace

std::string own_train(const std::vector<std::string>& command, const std::string& directory) {
  const std::string path = directory + "/train";
  const std::string& program = command.front();
  const bool is_path = program.find('/') != std::string::npos;
  std::error_code is_missing;
  const bool is_own =
      is_path ? std::filesystem::equivalent(program, path, is_missing) : program == "train";
  return is_own && ::access(path.c_str(), X_OK) == 0 ? path : "";
}

void check_train_arguments(const std::string& train, const std::vector<std::string>& command) {
  // Variables of a scheduler would make it a rank.
  std::vector<std::string> words{"env", "-i"};
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"))
    words.push_back(std::string("LD_LIBRARY_PATH=") + libraries);
  words.insert(words.end(), {train, "--help"});
  words.insert(words.end(), command.begin() + 1, command.end());
  ProgramEnd end;
  try {
    end = run_to_end(words, kLimit);
  } catch (const HostError&) {
    return;  // the ranks will say more
  }
  if (end.exit_code != static_cast<int>(ExitCode::usage)) return;
  while (end.text.ends_with('\n')) end.text.pop_back();
  throw InvalidArgument(end.text);
}

}  // namespace strata::launcher
