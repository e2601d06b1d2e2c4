#include "launcher/command/autotuning.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"

namespace strata::launcher {
namespace {

bool names_target(const std::vector<std::string>& command) {
  return std::any_of(command.begin(), command.end(), [](std::string word) {
    word.resize(std::min(word.find('='), word.size()));
    std::replace(word.begin(), word.end(), '_', '-');
    return word == "--target-memory";
  });
}

void plan_instead(Options& options) {
  std::string& program = options.command.front();
  program = (std::filesystem::path(program).parent_path() / "plan").string();
  int ranks = 0;  // of all hosts
  for (const ListedHost& host : options.hosts.listed) ranks += host.slots;
  if (ranks > 0) {
    options.ranks = ranks;
    options.hosts = {};
  }
  if (options.ranks_given || ranks > 0)
    options.command.insert(options.command.end(), {"--world", std::to_string(options.ranks)});
  options.ranks = 1;
  options.ranks_given = true;
  options.launcher = Options::Launcher::local;
  options.notes.emplace_back(
      "--autotuning tune: nothing is trained; plan says what would be chosen, and with "
      "--write-config FILE after the program it writes the settings");
}

}  // namespace

void apply_autotuning(const std::string& mode, Options& options) {
  if (mode != "run" && mode != "tune")
    throw InvalidArgument(fmt::format("--autotuning {}: expected run or tune", mode));
  const std::string program = std::filesystem::path(options.command.front()).filename().string();
  if (program != "train")
    throw InvalidArgument(fmt::format(
        "--autotuning {}: {} is not train, and nothing is known about its options; one that takes "
        "those of train takes --target-memory auto, too",
        mode, program));
  if (mode == "tune") return plan_instead(options);
  if (names_target(options.command)) return;
  options.command.insert(options.command.end(), {"--target-memory", "auto"});
  options.notes.emplace_back(
      "--autotuning run: train gets --target-memory auto, and chooses what is not given");
}

}  // namespace strata::launcher
