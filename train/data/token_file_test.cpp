#include "train/data/token_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

template <typename Id>
std::string raw(const std::vector<Id>& ids) {
  return std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id));
}

std::string llmc_header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return raw(header);
}

std::vector<std::int32_t> read(const TokenSource& source, std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  source.read(first, out);
  return out;
}

std::string open_error(const std::string& path) {
  return message_of<DataError>([&] { open_token_file(path, 50257); });
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(TokenFile, TextIsItsBytes) {
  const TestDirectory directory;
  const auto source = open_token_file(directory.file("a.txt", "h\xc3\xa9\n"), 256);
  EXPECT_EQ(source->size(), 4);
  EXPECT_EQ(source->vocabulary_bound(), 256);
  EXPECT_EQ(read(*source, 1, 3), (std::vector<std::int32_t>{0xc3, 0xa9, '\n'}));
}

TEST(TokenFile, ReadsLlmcAndNanogptFiles) {
  const TestDirectory directory;
  const auto gpt2 =
      directory.file("g.bin", llmc_header(20240520, 1, 3) + raw<std::uint16_t>({1, 50256, 3}));
  const auto llama =
      directory.file("l.bin", llmc_header(20240801, 7, 2) + raw<std::uint32_t>({128000, 7}));
  const auto nano = directory.file("n.bin", raw<std::uint16_t>({5, 6, 7, 65535}));
  EXPECT_EQ(read(*open_token_file(gpt2, 50257), 0, 3), (std::vector<std::int32_t>{1, 50256, 3}));
  EXPECT_EQ(read(*open_token_file(llama, 128256), 0, 2), (std::vector<std::int32_t>{128000, 7}));
  EXPECT_EQ(read(*open_token_file(nano, 65536), 2, 2), (std::vector<std::int32_t>{7, 65535}));
}

// Faults 29, 38.
TEST(TokenFile, IdsBeyondTheVocabularyAreNamedWithPosition) {
  const TestDirectory directory;
  const auto path =
      directory.file("g.bin", llmc_header(20240520, 1, 3) + raw<std::uint16_t>({1, 50257, 3}));
  const auto source = open_token_file(path, 50257);
  EXPECT_EQ(read(*source, 2, 1)[0], 3);
  EXPECT_EQ(
      message_of<DataError>([&] { read(*source, 0, 3); }),
      path +
          ": token 1 (byte 1026) is 50257, expected less than the model's vocabulary of 50257: "
          "tokenize the text for this model");
  const auto wide =
      directory.file("l.bin", llmc_header(20240801, 7, 1) + raw<std::uint32_t>({0xffffffffU}));
  EXPECT_CONTAINS(message_of<DataError>([&] { read(*open_token_file(wide, 128256), 0, 1); }),
                  "is 4294967295");
}

// Fault 29.
TEST(TokenFile, HeadersThatLieAreRefused) {
  const TestDirectory directory;
  const auto with = [&](const std::string& content) {
    return open_error(directory.file("t.bin", content));
  };
  EXPECT_CONTAINS(with(llmc_header(20240520, 2, 1) + "ab"), "token file version 2, expected 1");
  EXPECT_CONTAINS(with(llmc_header(20240520, 1, 2) + "ab"),
                  "counts 2 tokens of 2 bytes, expected 1028 bytes in all, found 1026");
  EXPECT_CONTAINS(with(llmc_header(20240801, 7, -1)), "counts -1 tokens");
  EXPECT_CONTAINS(with(llmc_header(20240520, 1, 0)), "is empty");
  EXPECT_CONTAINS(with(llmc_header(20240520, 1, 2).substr(0, 1000)), "expected a header of 1024");
  EXPECT_CONTAINS(with("abc"), "odd size of 3 bytes");
  EXPECT_CONTAINS(with(""), "t.bin: the data file is empty");
}

// Fault 29.
TEST(TokenFile, MissingAndEmptyFilesHaveOneClearMessageEach) {
  const TestDirectory directory;
  EXPECT_CONTAINS(open_error(directory / "none.txt"), "none.txt: cannot open: No such file");
  EXPECT_CONTAINS(open_error(directory.path()), "Is a directory");
  EXPECT_CONTAINS(open_error(directory.file("a.txt", "")), "the data file is empty");
  EXPECT_THROW(open_token_files({}, 256), InvalidArgument);
}

// Faults 29, 38.
TEST(TokenFile, AFileThatShrinksIsAnError) {
  const TestDirectory directory;
  const auto path = directory.file("a.txt", "0123456789");
  const auto source = open_token_file(path, 256);
  std::filesystem::resize_file(path, 4);
  EXPECT_THROW(read(*source, 2, 4), IoError);
}

TEST(TokenSource, ConcatenatedFilesAreOneRow) {
  const TestDirectory directory;
  const auto all = open_token_files(
      {directory.file("a", "abc"), directory.file("b", "d"), directory.file("c", "efgh")}, 256);
  EXPECT_EQ(all->size(), 8);
  for (std::int64_t first = 0; first <= 8; ++first)
    for (std::int64_t count = 0; first + count <= 8; ++count) {
      std::vector<std::int32_t> expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), static_cast<std::int32_t>('a' + first));
      EXPECT_EQ(read(*all, first, count), expected) << first << " " << count;
    }
}

TEST(TokenSource, AnEndTokenAndAnotherNameGoBetweenOthers) {
  const TestDirectory directory;
  const auto text = renamed(open_token_file(directory.file("cache", "ab"), 256), "mine.txt");
  EXPECT_EQ(text->name(), "mine.txt");
  const auto all = concatenate({text, single_token(7, 256), text});
  EXPECT_EQ(read(*all, 0, 5), (std::vector<std::int32_t>{'a', 'b', 7, 'a', 'b'}));
  EXPECT_EQ(read(*all, 2, 1), (std::vector<std::int32_t>{7}));
  EXPECT_EQ(all->vocabulary_bound(), 256);
}

TEST(TokenSource, ThePartHeldOutIsTheEnd) {
  const TestDirectory directory;
  const auto source = open_token_file(directory.file("a", "abcdefghij"), 256);
  const SplitTokens split = hold_out(source, 0.2);
  EXPECT_EQ(split.training->size(), 8);
  EXPECT_EQ(read(*split.held_out, 0, 2), (std::vector<std::int32_t>{'i', 'j'}));
  EXPECT_THROW(hold_out(source, 0), ConfigError);
  EXPECT_THROW(hold_out(source, 1), ConfigError);
}

}  // namespace
}  // namespace strata::train
