// A rank that cannot write its part of a checkpoint: what the others do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/testing/failing_file_system.h"
#include "core/testing/test_directory.h"
#include "tests/training/saved_runs.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace strata::tests {
namespace {

using plan::Home;
using train::CheckpointReader;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// Lets one rank's operation fail: all throw the same, nothing is left, and the next save works.
void expect_all_fail(int bad_rank, FileOperation operation, bool lasting) {
  const TrainingCase training = case_of(3, 2, Home::device, recipe("fp32-master"));
  const TestDirectory directory;
  const std::string& output = directory.path();
  int failures = 0;
  on_new_weights(training, [&](train::Engine& engine) {
    PosixFileSystem files;
    comm::Communicator& communicator = engine.communicator();
    int attempt = 0;
    const auto save = [&](FileSystem& with, std::int64_t at) {
      train::save_checkpoint(
          engine, with,
          {.output = output, .step = at, .attempt = {.run_id = "test", .attempt = attempt++}});
    };
    save(files, 1);
    step(engine, 0);
    for (int nth = 1;; ++nth) {
      const bool bad = communicator.rank() == bad_rank;
      FailingFileSystem failing(files, {operation, nth, ENOSPC, lasting});
      std::string message;
      ExitCode code = ExitCode::done;
      try {
        save(bad ? static_cast<FileSystem&>(failing) : files, 2);
      } catch (const PeerError& error) {
        ADD_FAILURE() << "a rank left: " << error.what();
        throw;
      } catch (const Error& error) {
        message = error.what();
        code = error.exit_code();
      }
      const bool fired = comm::gather_numbers(
                             communicator, failing.fired())[static_cast<std::size_t>(bad_rank)] > 0;
      // The exchange of messages also waits until rank 0 has removed the failed save.
      const std::vector<std::string> all = comm::gather_texts(communicator, message);
      EXPECT_TRUE(std::ranges::all_of(all, [&](const auto& m) { return m == message; }))
          << message << "\n"
          << all.front();
      if (!fired) {
        EXPECT_EQ(message, "");
        break;
      }
      EXPECT_EQ(code, ExitCode::io) << message;
      EXPECT_TRUE(message.starts_with("rank " + std::to_string(bad_rank) + ": ")) << message;
      EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
      if (communicator.rank() == 0) {
        ++failures;
        EXPECT_EQ(names_in(output), std::vector<std::string>{train::checkpoint_name(1)});
        CheckpointReader(files, output + "/" + train::checkpoint_name(1)).verify();
      }
      engine.barrier();
    }
    if (communicator.rank() != 0) return;
    EXPECT_EQ(names_in(output),
              (std::vector<std::string>{train::checkpoint_name(1), train::checkpoint_name(2)}));
    CheckpointReader(files, output + "/" + train::checkpoint_name(2)).verify();
  });
  EXPECT_GT(failures, 0) << "no fault fired";
}

// Fault 17.
TEST(FailingRank, MakesEveryRankThrowItsMessage) {
  const std::vector<FileOperation> helpers{FileOperation::open, FileOperation::write,
                                           FileOperation::sync};
  std::vector<FileOperation> first{FileOperation::make_directory, FileOperation::create,
                                   FileOperation::reserve,        FileOperation::write,
                                   FileOperation::sync,           FileOperation::sync_directory,
                                   FileOperation::rename};
  for (const int rank : {0, 2})
    for (const FileOperation operation : rank == 0 ? first : helpers) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", operation " +
                   std::to_string(static_cast<int>(operation)));
      expect_all_fail(rank, operation, false);
    }
}

TEST(FailingRank, MayFailFromThenOn) {
  for (const int rank : {0, 2}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    expect_all_fail(rank, FileOperation::write, true);
  }
}

}  // namespace
}  // namespace strata::tests
