#include "train/checkpoint/checkpoint_reader.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/testing/failing_file_system.h"
#include "core/testing/test_directory.h"
#include "train/checkpoint/testing/checkpoint_testing.h"
#include "train/files/model_files.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

class CheckpointReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    save_test_checkpoint(files_, output_.path(), 7);
    path_ = output_ / "step-00000007";
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    return read_whole_file(path_ + "/" + name, 1 << 26);
  }
  void overwrite(const std::string& name, const std::string& text) const {
    write_file_atomically(path_ + "/" + name, text);
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path_))
      if (entry.is_regular_file()) found.push_back(fs::relative(entry.path(), path_));
    return found;
  }
  /// The message with which loading everything fails.
  std::string refusal() {
    return message_of<DataError>([&] {
      CheckpointReader(files_, path_, {.threads = 1, .caching = Caching::cached}).verify();
    });
  }

  TestDirectory output_;
  PosixFileSystem files_;
  std::string path_;
};

TEST_F(CheckpointReaderTest, ReadsWhatWasSaved) {
  const CheckpointReader reader(files_, path_);
  reader.verify();
  EXPECT_TRUE(holds_test_content(reader, 7));
  EXPECT_FALSE(holds_test_content(reader, 8));
  EXPECT_EQ(reader.tensors().size(), 4U);
  EXPECT_EQ(*reader.manifest().find_fact("world"), "2");
  EXPECT_EQ(reader.whole_file("trainer_state.json"), "{\"step\": 7}\n");
  EXPECT_EQ(reader.whole_file("templates/rag.jinja"), "{{ documents }}");
  EXPECT_EQ(text_of("templates/rag.jinja"), "{{ documents }}");
  const auto* tensor = reader.find(CheckpointReader::Part::optimizer, "exp_avg.model.b");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(reader.find(CheckpointReader::Part::model, "exp_avg.model.b"), nullptr);
  EXPECT_NE(message_of<DataError>([&] {
              (void)reader.whole_file("tokenizer.json");
            }).find("tokenizer.json"),
            std::string::npos);
}

TEST_F(CheckpointReaderTest, TheFolderIsAHuggingFaceModel) {
  const ModelFiles model(path_);
  EXPECT_EQ(model.tensors().size(), 2U);
  EXPECT_EQ(model.at("model.a").shape, (std::vector<std::int64_t>{50, 40}));
}

TEST_F(CheckpointReaderTest, RandomRangesFromSeveralThreads) {
  const CheckpointReader reader(files_, path_, {.threads = 3});
  const auto work = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 30; ++round) {
      std::vector<CheckpointReader::Range> ranges;
      std::vector<std::vector<std::byte>> out(1 + random() % 6);
      for (auto& data : out) {
        const auto& tensor = reader.tensors()[random() % reader.tensors().size()];
        const auto elements = static_cast<std::uint64_t>(tensor.stored.elements());
        const auto first = static_cast<std::int64_t>(random() % elements);
        const auto count = static_cast<std::int64_t>(
            random() % (elements - static_cast<std::uint64_t>(first) + 1));
        data.resize(static_cast<std::size_t>(count * size_of(*tensor.stored.dtype)));
        ranges.push_back({&tensor, first, count, data});
      }
      reader.read(ranges);
      for (const auto& range : ranges) {
        const std::int64_t begin = range.tensor->stored.offset_bytes +
                                   range.first_element * size_of(*range.tensor->stored.dtype);
        const auto expected = test_bytes(
            7, {range.tensor->file, begin, begin + static_cast<std::int64_t>(range.out.size())});
        ASSERT_TRUE(std::ranges::equal(range.out, expected));
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 3; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CheckpointReaderTest, EachBlockIsReadOncePerWalk) {
  FailingFileSystem counting(files_, {.operation = FileOperation::read, .nth = -1});
  std::atomic<int> beats = 0;
  const CheckpointReader reader(counting, path_, {.beat = Beat([&beats] { ++beats; })});
  const int before = counting.count();
  const int beats_before = beats;
  std::vector<std::vector<std::byte>> out;
  std::vector<CheckpointReader::Range> ranges;
  for (const auto& tensor : reader.tensors())
    for (std::int64_t i = tensor.stored.elements(); i-- > 0;)
      out.emplace_back(static_cast<std::size_t>(size_of(*tensor.stored.dtype)));
  std::size_t next = 0;
  for (const auto& tensor : reader.tensors())
    for (std::int64_t i = tensor.stored.elements(); i-- > 0;)
      ranges.push_back({&tensor, i, 1, out[next++]});
  reader.read(ranges);
  int blocks = 0;
  for (const auto& file : reader.manifest().block_files)
    blocks += static_cast<int>(file.blocks.size()) - 1;  // headers fill their first blocks
  EXPECT_EQ(counting.count() - before, blocks);
  EXPECT_EQ(beats - beats_before, blocks);
}

// Fault 18.
// Flips one bit of each byte, one byte after the other.
TEST_F(CheckpointReaderTest, EveryFlippedByteIsRefusedByFileTensorAndRange) {
  const CheckpointLayout layout({{"a", DType::f32, {1100}}}, {{"m.a", DType::bf16, {1100}}},
                                {.block_bytes = kTestBlockBytes});
  save_test_checkpoint(files_, output_.path(), 8, layout);
  path_ = output_ / "step-00000008";
  for (const std::string& name : names()) {
    const std::string good = text_of(name);
    for (std::size_t i = 0; i < good.size(); ++i) {
      const char flipped = static_cast<char>(good[i] ^ (1 << (i % 8)));
      File file = File::open_for_writing(path_ + "/" + name);
      const auto write = [&](char c) {
        file.write(static_cast<std::int64_t>(i), std::as_bytes(std::span(&c, 1)));
      };
      write(flipped);
      const std::string message = refusal();
      write(good[i]);
      ASSERT_NE(message.find(path_ + "/" + name), std::string::npos) << i << ": " << message;
      if (!name.ends_with(".safetensors")) continue;
      const std::size_t block = i / kTestBlockBytes;
      const std::string place = "block " + std::to_string(block) + " (bytes " +
                                std::to_string(block * kTestBlockBytes) + " to ";
      ASSERT_NE(message.find(place), std::string::npos) << message;
      ASSERT_NE(message.find(block == 0 ? "header" : "tensor '"), std::string::npos) << message;
      ASSERT_NE(message.find("resume from an older one"), std::string::npos) << message;
    }
  }
  EXPECT_EQ(refusal(), "no error");
}

// Fault 18.
TEST_F(CheckpointReaderTest, EveryTruncatedBlockAndEveryOtherSizeIsRefused) {
  for (const std::string& name : names()) {
    const std::string good = text_of(name);
    for (std::size_t size = 0;
         size<good.size(); size += good.size()> 2 * kTestBlockBytes ? 1024 : 1) {
      fs::resize_file(path_ + "/" + name, size);
      const std::string message = refusal();
      ASSERT_NE(message.find(path_ + "/" + name), std::string::npos) << message;
      if (name.ends_with(".safetensors")) {
        ASSERT_NE(message.find("bytes " + std::to_string(size) + " to "), std::string::npos);
        ASSERT_NE(message.find(size < kTestBlockBytes ? "header" : "tensor '"), std::string::npos)
            << message;
      }
      overwrite(name, good);
    }
    overwrite(name, good + std::string(1, '\0'));
    EXPECT_NE(refusal().find(path_ + "/" + name), std::string::npos);
    overwrite(name, good);
    fs::rename(path_ + "/" + name, output_ / "elsewhere");
    const std::string message = refusal();
    EXPECT_NE(message.find(name), std::string::npos) << message;
    fs::rename(output_ / "elsewhere", path_ + "/" + name);
  }
  EXPECT_EQ(refusal(), "no error");
}

TEST_F(CheckpointReaderTest, FilesThatOthersWouldLoadAreRefused) {
  write_file_atomically(path_ + "/README.md", "mine");
  EXPECT_EQ(refusal(), "no error");
  for (const std::string name : {"extra.safetensors", "model.safetensors"}) {
    write_file_atomically(path_ + "/" + name, "x");
    EXPECT_NE(refusal().find(path_ + "/" + name), std::string::npos);
    fs::remove(path_ + "/" + name);
  }
}

// Fault 18.
TEST_F(CheckpointReaderTest, ABlockOfAnotherCheckpointIsRefused) {
  save_test_checkpoint(files_, output_.path(), 8);
  const std::string name = "optimizer-00001-of-00002.safetensors";
  fs::copy_file(output_ / ("step-00000008/" + name), path_ + "/" + name,
                fs::copy_options::overwrite_existing);
  const std::string message = refusal();
  EXPECT_NE(message.find(name), std::string::npos) << message;
  EXPECT_NE(message.find("exp_avg.model.a"), std::string::npos) << message;
}

TEST_F(CheckpointReaderTest, AllDamageIsFound) {
  const auto damage = [&](int threads) {
    return CheckpointReader(files_, path_, {.threads = threads}).find_damage();
  };
  EXPECT_TRUE(damage(2).empty());
  const auto flip = [&](const std::string& name, std::size_t at) {
    std::string text = text_of(name);
    text[at] = static_cast<char>(text[at] ^ 1);
    overwrite(name, text);
  };
  flip("config.json", 3);
  flip("optimizer-00001-of-00002.safetensors", 2 * kTestBlockBytes + 5);
  flip("model.safetensors", kTestBlockBytes + 5);
  flip("model.safetensors", 2 * kTestBlockBytes + 5);
  for (const int threads : {1, 4}) {
    const auto found = damage(threads);
    ASSERT_EQ(found.size(), 4U);
    EXPECT_NE(found[0].find("config.json: bytes 0 to 24 have hash"), std::string::npos) << found[0];
    EXPECT_NE(found[1].find("model.safetensors: block 1"), std::string::npos) << found[1];
    EXPECT_NE(found[2].find("model.safetensors: block 2"), std::string::npos) << found[2];
    EXPECT_NE(found[3].find("optimizer-00001-of-00002.safetensors: block 2"), std::string::npos)
        << found[3];
    EXPECT_NE(found[3].find("exp_avg.model.a"), std::string::npos) << found[3];
  }
}

// Fault 17.
TEST_F(CheckpointReaderTest, AReadErrorIsTriedOnceMore) {
  for (int nth = 1;; ++nth) {
    FailingFileSystem once(files_,
                           {.operation = FileOperation::read, .nth = nth, .error_number = EIO});
    EXPECT_NO_THROW(CheckpointReader(once, path_, {.threads = 1}).verify());
    if (once.fired() == 0) break;
    FailingFileSystem always(
        files_,
        {.operation = FileOperation::read, .nth = nth, .error_number = EIO, .lasting = true});
    const std::string message =
        message_of<IoError>([&] { CheckpointReader(always, path_, {.threads = 1}).verify(); });
    EXPECT_NE(message.find("Input/output error"), std::string::npos) << message;
    EXPECT_NE(message.find(path_), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace strata::train
