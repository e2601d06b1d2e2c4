#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <latch>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <type_traits>

#include "core/error.h"
#include "core/file.h"
#include "core/testing/test_directory.h"
#include "core/text_table.h"
#include "train/checkpoint/testing/checkpoint_testing.h"
#include "train/inspect/batches.h"
#include "train/inspect/folder_difference.h"
#include "train/inspect/tensor_statistics.h"

namespace strata::train {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// Writes a model.safetensors with these tensors, one after another.
void write_model(const std::string& folder, const std::vector<TensorSpec>& specs,
                 const std::vector<std::span<const std::byte>>& data) {
  std::string text = make_safetensors_header(specs, {});
  for (const auto& part : data)
    text.append(reinterpret_cast<const char*>(part.data()), part.size());
  std::filesystem::create_directories(folder);
  write_file_atomically(folder + "/model.safetensors", text);
}

TEST(Batches, EveryPieceIsInOneAndNoneIsTooLarge) {
  const std::vector<std::int64_t> pieces{1, kPartBytes - 1, 1, 0, 3 * kPartBytes, 5, 6, kPartBytes};
  for (const int threads : {1, 4}) {
    std::mutex mutex;
    std::set<std::pair<std::size_t, std::size_t>> batches;
    for_each_batch(pieces, threads, [&](std::size_t first, std::size_t end) {
      const std::lock_guard lock(mutex);
      batches.emplace(first, end);
    });
    EXPECT_EQ(batches, (std::set<std::pair<std::size_t, std::size_t>>{
                           {0, 2}, {2, 4}, {4, 5}, {5, 7}, {7, 8}}));
  }
}

TEST(Batches, TheFirstErrorIsThrown) {
  const std::vector<std::int64_t> pieces(64, kPartBytes);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> failures = 0;
    const std::string message = message_of<DataError>([&] {
      for_each_batch(pieces, 4, [&](std::size_t first, std::size_t) {
        if (first < 5) return;
        ++failures;
        throw DataError(std::to_string(first));
      });
    });
    EXPECT_EQ(message, "5");
    EXPECT_GE(failures, 1);
  }
}

TEST(Batches, AnErrorOfEarlierPiecesCountsThoughItComesLate) {
  const std::vector<std::int64_t> pieces(2, kPartBytes);
  std::latch failing(1);
  const std::string message = message_of<DataError>([&] {
    for_each_batch(pieces, 2, [&](std::size_t first, std::size_t) {
      if (first == 1) {
        failing.count_down();
        throw DataError("1");
      }
      failing.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // which is caught by then
      throw DataError("0");
    });
  });
  EXPECT_EQ(message, "0");
}

TEST(CutTensor, PartsBeginWhereTheirPhaseSays) {
  const auto firsts = [](const std::vector<TensorPart>& parts) {
    std::vector<std::int64_t> result;
    std::int64_t end = 0;
    for (const TensorPart& part : parts) {
      EXPECT_EQ(part.tensor, 3U);
      EXPECT_EQ(part.first_element, end);
      end += part.elements;
      result.push_back(part.first_element);
    }
    result.push_back(end);
    return result;
  };
  EXPECT_EQ(firsts(cut_tensor(3, 20, 8)), (std::vector<std::int64_t>{0, 8, 16, 20}));
  EXPECT_EQ(firsts(cut_tensor(3, 20, 8, 13)), (std::vector<std::int64_t>{0, 3, 11, 19, 20}));
  EXPECT_EQ(firsts(cut_tensor(3, 0, 8)), (std::vector<std::int64_t>{0}));
}

TEST(Statistics, OfEveryType) {
  const auto expect = [](DType dtype, std::span<const std::byte> data, double least, double largest,
                         double mean, double norm) {
    const TensorStatistics found = statistics_of(dtype, data);
    EXPECT_EQ(found.least, least) << name_of(dtype);
    EXPECT_EQ(found.largest, largest) << name_of(dtype);
    EXPECT_EQ(found.mean(), mean) << name_of(dtype);
    EXPECT_EQ(found.norm(), norm) << name_of(dtype);
    EXPECT_EQ(found.not_finite, 0) << name_of(dtype);
    EXPECT_EQ(found.zeros, 1) << name_of(dtype);
  };
  const auto of_integers = [&]<typename T>(DType dtype, std::type_identity<T>) {
    expect(dtype, bytes_of(std::vector<T>{0, 3, 4, 1}), 0, 4, 2, std::sqrt(26.0));
  };
  of_integers(DType::u8, std::type_identity<std::uint8_t>{});
  of_integers(DType::i16, std::type_identity<std::int16_t>{});
  of_integers(DType::i32, std::type_identity<std::int32_t>{});
  of_integers(DType::i64, std::type_identity<std::int64_t>{});
  of_integers(DType::f32, std::type_identity<float>{});
  of_integers(DType::f64, std::type_identity<double>{});
  // 0, -3, 5, 2 in 16 bits
  expect(DType::bf16, bytes_of(std::vector<std::uint16_t>{0, 0xc040, 0x40a0, 0x4000}), -3, 5, 1,
         std::sqrt(38.0));
  expect(DType::f16, bytes_of(std::vector<std::uint16_t>{0, 0xc200, 0x4500, 0x4000}), -3, 5, 1,
         std::sqrt(38.0));
  expect(DType::i16, bytes_of(std::vector<std::int16_t>{0, -3, 5, 2}), -3, 5, 1, std::sqrt(38.0));
}

TEST(Statistics, WhatIsNotFiniteIsCountedApart) {
  const float inf = std::numeric_limits<float>::infinity();
  TensorStatistics found = statistics_of(
      DType::f32, bytes_of(std::vector<float>{inf, 2, -0.0F, std::nanf(""), -inf, 4}));
  EXPECT_EQ(found.not_finite, 3);
  EXPECT_EQ(found.finite, 3);
  EXPECT_EQ(found.zeros, 1);
  EXPECT_EQ(found.mean(), 2);
  EXPECT_EQ(found.largest, 4);
  found = statistics_of(DType::f32, bytes_of(std::vector<float>{inf}));
  EXPECT_TRUE(std::isnan(found.mean()));
}

TEST(Statistics, TheSameBitsForAnyThreadsAndPlace) {
  const TestDirectory directory;
  const std::string here = directory / "here", there = directory / "there";
  // The tensor has several parts, and sums that depend on their order.
  std::vector<float> values(3 * kPartBytes / 4 + 1001);
  std::mt19937 random(1);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(random()) / 1e9F - 2, static_cast<int>(random() % 40));
  const auto elements = static_cast<std::int64_t>(values.size());
  write_model(here, {{"a", DType::f32, {elements}}}, {bytes_of(values)});
  const std::vector<float> before(777, 1);
  write_model(there, {{"b", DType::f32, {777}}, {"a", DType::f32, {elements}}},
              {bytes_of(before), bytes_of(values)});
  PosixFileSystem files;
  const TensorStatistics expected = statistics_of(TensorFolder(files, here), 1).at(0);
  double exact = 0;
  for (const float value : values) exact += static_cast<double>(value);
  EXPECT_NEAR(expected.sum, exact, std::abs(exact) * 1e-9);
  EXPECT_EQ(expected.finite, elements);
  for (const int threads : {2, 5})
    for (const std::string& folder : {here, there}) {
      const TensorStatistics found = statistics_of(TensorFolder(files, folder), threads).back();
      EXPECT_EQ(found.sum, expected.sum);
      EXPECT_EQ(found.squares, expected.squares);
      EXPECT_EQ(found.least, expected.least);
      EXPECT_EQ(found.zeros, expected.zeros);
    }
}

TEST(Difference, CountsBitsAndMeasuresNumbers) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const auto difference = [](const std::vector<float>& a, const std::vector<float>& b) {
    return difference_of(DType::f32, bytes_of(a), bytes_of(b));
  };
  EXPECT_EQ(difference({1, nan, 0}, {1, nan, 0}).elements, 0);
  EXPECT_EQ(difference({1, 2, 3}, {1, 2.5, 1}).elements, 2);
  EXPECT_EQ(difference({1, 2, 3}, {1, 2.5, 1}).largest, 2);
  EXPECT_EQ(difference({0}, {-0.0F}).elements, 1);
  EXPECT_EQ(difference({0}, {-0.0F}).largest, 0);
  EXPECT_EQ(difference({nan, 5}, {1, 4}).largest, inf);
  EXPECT_EQ(difference({inf}, {-inf}).largest, inf);
}

TEST(Difference, OfFolders) {
  const TestDirectory directory;
  const std::string a = directory / "a", b = directory / "b";
  std::vector<float> values(2 * kPartBytes / 4 + 5, 0.5F), changed = values;
  changed[3] = 1;
  changed.back() = -2;
  const std::vector<float> small{1, 2};
  const auto elements = static_cast<std::int64_t>(values.size());
  write_model(
      a, {{"large", DType::f32, {elements}}, {"gone", DType::f32, {2}}, {"x", DType::f32, {2}}},
      {bytes_of(values), bytes_of(small), bytes_of(small)});
  write_model(
      b, {{"x", DType::f32, {2, 1}}, {"new", DType::f32, {2}}, {"large", DType::f32, {elements}}},
      {bytes_of(small), bytes_of(small), bytes_of(changed)});
  PosixFileSystem files;
  const TensorFolder in_a(files, a), in_b(files, b);
  for (const int threads : {1, 3}) {
    const FolderDifference found = compare_folders(in_a, in_b, threads);
    EXPECT_FALSE(found.same());
    EXPECT_EQ(found.only_a, (std::vector<std::size_t>{1}));
    EXPECT_EQ(found.only_b, (std::vector<std::size_t>{1}));
    ASSERT_EQ(found.other_form.size(), 1U);
    EXPECT_EQ(found.other_form[0].a, 2U);
    EXPECT_EQ(found.other_form[0].b, 0U);
    ASSERT_EQ(found.differences.size(), 1U);
    EXPECT_EQ(found.differences[0].elements, 2);
    EXPECT_EQ(found.differences[0].largest, 2.5);
    EXPECT_TRUE(compare_folders(in_a, in_a, threads).same());
  }
}

TEST(TensorFolder, ReadsCheckpointsVerified) {
  const TestDirectory output;
  PosixFileSystem files;
  save_test_checkpoint(files, output.path(), 7);
  const std::string path = output / "step-00000007";
  const TensorFolder folder(files, path);
  ASSERT_EQ(folder.tensors().size(), 4U);
  EXPECT_FALSE(folder.tensors()[0].optimizer);
  EXPECT_TRUE(folder.tensors()[2].optimizer);
  const std::vector<TensorPart> parts{{1, 5, 6}, {0, 1999, 1}};
  std::vector<std::byte> buffer;
  const auto views = folder.read(parts, buffer);
  const StoredTensor &first = folder.tensors()[1].stored, &second = folder.tensors()[0].stored;
  const CheckpointReader reader(files, path);
  const std::size_t first_file = reader.find(CheckpointReader::Part::model, first.name)->file;
  const auto expected =
      test_bytes(7, {first_file, first.offset_bytes + 10, first.offset_bytes + 22});
  EXPECT_TRUE(std::equal(views[0].begin(), views[0].end(), expected.begin(), expected.end()));
  EXPECT_EQ(views[1].size(), 4U);
  const char wrong = 'x';
  File::open_for_writing(second.file)
      .write(second.offset_bytes + second.size_bytes - 1, std::as_bytes(std::span(&wrong, 1)));
  EXPECT_NE(message_of<DataError>([&] { folder.read(parts, buffer); }).find("model.a"),
            std::string::npos);
}

TEST(TextTable, AlignsColumns) {
  TextTable table({{"name"}, {"bytes", TextTable::Align::right}, {"file"}});
  EXPECT_EQ(table.text(), "");
  table.add({"a", "1000000", ""});
  table.add({"longer", "1", "f"});
  EXPECT_EQ(table.text(),
            "name      bytes  file\n"
            "a       1000000\n"
            "longer        1  f\n");
}

}  // namespace
}  // namespace strata::train
