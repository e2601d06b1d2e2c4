// Runs `inspect`, which examines checkpoints and other Hugging Face directories.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/file_system.h"
#include "core/program_main.h"
#include "core/standard_output.h"
#include "core/version.h"
#include "train/inspect/commands.h"

namespace strata::train {
namespace {

constexpr int kDifferent = 1;
/// More threads rarely make a disk faster, and each reads 8 MiB at a time.
constexpr int kMostThreads = 8;

struct Arguments {
  std::string folder;
  std::string other;
  bool statistics = false;
  int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
};

int run(int argc, char** argv, const RankContext& context, StandardOutput& output) {
  Arguments arguments;
  CLI::App app(
      "Looks at checkpoints of train and at other Hugging Face directories, and changes nothing.\n"
      "Without a command: the tensors in a folder. Exit codes: 0 done (diff: the same),\n"
      "1 diff: different, 2 usage, 65 damaged or no such thing, 74 reading or printing failed.");
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.add_option("--threads", arguments.threads, "threads that read; the result is the same")
      ->check(CLI::Range(1, 256));
  app.add_option("DIR", arguments.folder, "a checkpoint (OUTPUT/step-00001000) or a model");
  app.add_flag("--statistics", arguments.statistics,
               "and minimum, maximum, mean, L2 norm, not finite values, zeros");
  CLI::App* verify = app.add_subcommand(
      "verify", "reads every block; names what is damaged, and an older checkpoint");
  verify->add_option("DIR", arguments.folder, "a checkpoint")->required();
  CLI::App* diff =
      app.add_subcommand("diff", "which tensors differ, in how many elements, by how much");
  diff->add_option("A", arguments.folder, "a checkpoint or a model")->required();
  diff->add_option("B", arguments.other, "another one")->required();
  CLI::App* digest =
      app.add_subcommand("digest", "digests of all state, as train --dump-state prints them");
  digest->add_option("DIR", arguments.folder, "a checkpoint or a model")->required();
  CLI::App* list = app.add_subcommand("list", "the checkpoints of an output folder");
  list->add_option("OUTPUT", arguments.folder, "what train --output named")->required();
  app.set_version_flag("--version", version_text("inspect"), "print the version of Strata");
  try {
    app.parse(argc, argv);
    if (arguments.folder.empty()) throw CLI::RequiredError("DIR");
    if (arguments.statistics && !app.get_subcommands().empty())
      throw CLI::ExcludesError("--statistics", app.get_subcommands().front()->get_name());
  } catch (const CLI::CallForVersion& version) {
    output.print(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  if (context.world > 1) throw InvalidArgument("inspect reads files once; start it without -np");
  PosixFileSystem files;
  if (verify->parsed()) {
    output.print(
        verify_checkpoint(files, arguments.folder, arguments.threads,
                          [&](const std::string& damage) { output.print(damage + "\n"); }));
  } else if (diff->parsed()) {
    const Comparison found = compare(files, arguments.folder, arguments.other, arguments.threads);
    output.print(found.text);
    return found.same ? static_cast<int>(ExitCode::done) : kDifferent;
  } else if (digest->parsed()) {
    output.print(digest_tensors(files, arguments.folder, arguments.threads));
  } else if (list->parsed()) {
    output.print(list_output(files, arguments.folder));
  } else {
    output.print(list_tensors(files, arguments.folder, arguments.statistics, arguments.threads));
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace
}  // namespace strata::train

int main(int argc, char** argv) {
  return strata::program_main("inspect", [&](const auto& context, auto& output) {
    return strata::train::run(argc, argv, context, output);
  });
}
