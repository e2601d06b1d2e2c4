// Event files and CSV files: bytes, tags, and what a run that goes on makes of them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/testing/test_directory.h"
#include "train/session/crc32c.h"
#include "train/session/event_records.h"
#include "train/session/tool_logs_listener.h"

namespace strata::train {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes)
    for (const int digit : {(c >> 4) & 15, c & 15}) text += "0123456789abcdef"[digit];
  return text;
}

TEST(Crc32c, HasTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

/// The bytes are those of TensorBoard's RecordWriter and Event.
TEST(EventRecords, AreTheBytesThatTensorBoardWrites) {
  EXPECT_EQ(hex(version_record(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  EXPECT_EQ(hex(restart_record(1.5, 3)),
            "0f000000000000006d532b0909000000000000f83f10033a020801ec8612fc");
  EXPECT_EQ(hex(scalars_record(1.5, 300, std::vector<Scalar>{{"a/b", 2.5}})),
            "1a00000000000000129bd82d09000000000000f83f10ac022a0c0a0a0a03612f621500002040483b4951");
}

std::map<std::string, double> values(const RunEvent& event, LogNames names, bool scaled = false) {
  std::map<std::string, double> found;
  for (const Scalar& scalar : scalars_of(event, names, scaled).scalars)
    found[scalar.tag] = scalar.value;
  return found;
}

TEST(RunScalars, HaveTheTagsOfTrainerOrOfDeepSpeed) {
  StepDone done;
  done.step = 7;
  done.metrics.loss = 2;
  done.metrics.loss_scale = 1024;
  done.arena_bytes = 5;
  EXPECT_EQ(scalars_of(done, LogNames::trainer, false).step, 7);
  const auto trainer = values(done, LogNames::trainer);
  EXPECT_EQ(trainer.at("train/loss"), 2);
  EXPECT_EQ(trainer.at("memory/device_arena_bytes"), 5);
  EXPECT_FALSE(trainer.contains("memory/disk_arena_bytes"));   // nothing is there
  EXPECT_FALSE(trainer.contains("memory/device_used_bytes"));  // the CPU computes
  EXPECT_FALSE(trainer.contains("train/mfu"));                 // nobody knows the peak
  EXPECT_FALSE(trainer.contains("train/loss_scale"));
  done.pinned_arena_bytes = 3;
  done.pageable_arena_bytes = 4;
  done.device_bytes = 9;
  const auto deepspeed = values(done, LogNames::deepspeed, true);
  EXPECT_EQ(deepspeed.at("Train/Samples/pinned_arena_bytes"), 3);
  EXPECT_EQ(deepspeed.at("Train/Samples/pageable_arena_bytes"), 4);
  EXPECT_EQ(deepspeed.at("Train/Samples/device_used_bytes"), 9);
  EXPECT_EQ(deepspeed.at("Train/Samples/train_loss"), 2);
  EXPECT_EQ(deepspeed.at("Train/Samples/lr"), 0);
  EXPECT_EQ(deepspeed.at("Train/Samples/loss_scale"), 1024);
  EXPECT_EQ(values(Evaluated{3, 9, 4.5}, LogNames::trainer).at("eval/loss"), 4.5);
  EXPECT_TRUE(values(Began{}, LogNames::trainer).empty());
}

class ToolLogsTest : public testing::Test {
 protected:
  ToolLogsTest() {
    options_.logs.report_to = {"csv"};
    options_.logs.directory = directory_.path();
  }
  /// Hears a run that began after `first` steps of 8 samples and came to `last`.
  void run(std::int64_t first, std::int64_t last) {
    ToolLogsListener logs(options_, listeners_);
    logs(Began{first, 8});
    for (std::int64_t step = first + 1; step <= last; ++step) {
      StepDone done;
      done.step = step;
      done.metrics.loss = 1.0 / static_cast<double>(step);
      logs(done);
    }
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    return read_whole_file(directory_ / name, 1 << 20);
  }

  TestDirectory directory_;
  TrainOptions options_;
  RunListeners listeners_;
};

TEST_F(ToolLogsTest, ARunThatGoesOnLeavesNoRowTwice) {
  run(0, 4);
  EXPECT_EQ(content("train_loss.csv"), "step,loss\n1,1\n2,0.5\n3,0.3333333333333333\n4,0.25\n");
  run(2, 3);
  EXPECT_EQ(content("train_loss.csv"), "step,loss\n1,1\n2,0.5\n3,0.3333333333333333\n");
}

TEST_F(ToolLogsTest, ATornRowIsCutAndATornHeaderWrittenAgain) {
  run(0, 2);
  write_file_atomically(directory_ / "train_loss.csv", "step,loss\n1,1\n2,0.");
  write_file_atomically(directory_ / "train_grad_norm.csv", "step,gr");
  run(1, 2);
  EXPECT_EQ(content("train_loss.csv"), "step,loss\n1,1\n2,0.5\n");
  EXPECT_EQ(content("train_grad_norm.csv"), "step,grad_norm\n2,0\n");
}

TEST_F(ToolLogsTest, ANewRunPutsRowsOfAnotherAside) {
  run(0, 2);
  run(0, 1);
  EXPECT_EQ(content("train_loss.csv"), "step,loss\n1,1\n");
  EXPECT_EQ(content("train_loss.csv.old"), "step,loss\n1,1\n2,0.5\n");
  for (const char* name : {"train_loss.csv", "eval_loss.csv"}) {
    write_file_atomically(directory_ / name, "my notes\n");
    EXPECT_THROW(run(0, 0), InvalidArgument) << "before the first step";
    EXPECT_EQ(content(name), "my notes\n");
    std::filesystem::remove(directory_ / name);
  }
}

TEST_F(ToolLogsTest, DeepSpeedsSectionsCountSamplesInTheirOwnFolder) {
  options_.logs = {};
  options_.logs.csv = {true, directory_.path(), "job"};
  options_.global_batch = 2;  // a run that goes on keeps the one of before
  std::filesystem::create_directory(directory_ / "job");
  run(0, 3);
  run(1, 2);
  EXPECT_EQ(content("job/Train_Samples_train_loss.csv"), "step,train_loss\n8,1\n16,0.5\n");
}

TEST_F(ToolLogsTest, EventFilesSortAfterEarlierOnesOfTheSameSecond) {
  options_.logs.report_to = {"tensorboard"};
  std::vector<std::string> names;
  for (int times = 0; times < 3; ++times) {
    run(0, 1);
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      if (const std::string name = entry.path().filename();
          std::ranges::find(names, name) == names.end()) {
        EXPECT_TRUE(names.empty() || names.back() < name);
        names.push_back(name);
      }
  }
  EXPECT_EQ(names.size(), 3u);
}

TEST_F(ToolLogsTest, ARunHasItsOwnFolderAndGoesOnInIt) {
  options_.logs.directory = "";
  options_.output = directory_.path();
  std::filesystem::create_directory(directory_ / "runs");
  run(0, 3);
  run(2, 3);
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "runs")) {
    ++folders;
    EXPECT_EQ(read_whole_file(entry.path() / "train_loss.csv", 1000),
              "step,loss\n1,1\n2,0.5\n3,0.3333333333333333\n");
  }
  EXPECT_EQ(folders, 1);
}

TEST_F(ToolLogsTest, AFullDiskLeavesWholeRowsUnderTheirHeaderAndIsCounted) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  std::vector<std::string> said;
  listeners_.add([&](const RunEvent& event) {
    const auto* note = std::get_if<Note>(&event);
    if (note != nullptr && note->level == Note::Level::warning) said.push_back(note->text);
  });
  ToolLogsListener logs(options_, listeners_);
  logs(Began{});
  const rlimit small{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  StepDone done;
  done.step = 1;
  EXPECT_THROW(logs(done), IoError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  done.step = 2;
  logs(done);
  EXPECT_EQ(content("train_loss.csv"), "step,loss\n2,0\n");
  logs(Refused{ExitCode::try_again, "SIGTERM: 30 s are over"});
  EXPECT_EQ(said.size(), 1U) << "these are the last words";
  logs.tell_missing();
  const std::string where = "CSV files in " + directory_.path() + ": ";
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0], where + "written again from step 2 on; 1 step is missing: 1");
  EXPECT_EQ(said[1], where + "1 step is missing: 1");
}

TEST_F(ToolLogsTest, WhatCannotBeWrittenIsSaidOnce) {
  ToolLogsListener logs(options_, listeners_);
  logs(Began{});
  std::filesystem::remove_all(directory_.path());
  EXPECT_THROW(logs(StepDone{}), IoError);
  logs(StepDone{});
}

}  // namespace
}  // namespace strata::train
