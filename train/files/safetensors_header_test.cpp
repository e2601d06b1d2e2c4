#include "train/files/safetensors_header.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

/// A file in memory: length, JSON, `data_bytes` zeros.
std::string file_of(const std::string& json, std::size_t data_bytes) {
  const std::uint64_t length = json.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + json + std::string(data_bytes, '\0');
}

std::vector<StoredTensor> parse(const std::string& content) {
  return parse_safetensors_header(std::as_bytes(std::span(content)),
                                  static_cast<std::int64_t>(content.size()), "m.safetensors");
}

std::string error_of(const std::string& json, std::size_t data_bytes) {
  return message_of<DataError>([&] { parse(file_of(json, data_bytes)); });
}

void expect_error(const std::string& json, std::size_t data_bytes, const std::string& part) {
  const std::string message = error_of(json, data_bytes);
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_NE(message.find("m.safetensors"), std::string::npos) << message;
}

TEST(SafetensorsHeader, ReadsTypesShapesAndOffsets) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}})";
  const auto tensors = parse(file_of(json, 16));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].elements(), 1);
  EXPECT_EQ(tensors[1].name, "none");
  EXPECT_EQ(tensors[1].elements(), 0);
  EXPECT_EQ(tensors[2].dtype, DType::bf16);
  EXPECT_EQ(tensors[2].offset_bytes, static_cast<std::int64_t>(8 + json.size() + 4));
  EXPECT_EQ(tensors[2].shape_text(), "[2, 3]");
}

// Fault 26.
TEST(SafetensorsHeader, RefusesFilesThatLie) {
  const auto tensor = [](const std::string& name, const std::string& type, const std::string& shape,
                         const std::string& range) {
    return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + range + "}";
  };
  const std::string a = tensor("a", "F32", "[2]", "[0,8]");
  EXPECT_EQ(error_of("{" + a + "}", 8), "no error");
  expect_error("{" + a + "}", 9, "the tensors end at byte");
  expect_error("{" + a + "}", 7, "a: data_offsets [0, 8], expected two increasing numbers up to 7");
  expect_error("{" + a + "}", 7, "the file is cut short, copy or download it again");
  expect_error("{" + a + "," + tensor("b", "F32", "[1]", "[4,8]") + "}", 8,
               "overlaps the one before");
  expect_error("{" + a + "," + tensor("b", "F32", "[1]", "[9,13]") + "}", 13, "a hole");
  expect_error("{" + a + "," + a + "}", 8, "a is given 2 times");
  expect_error("{" + tensor("a", "F32", "[3]", "[0,8]") + "}", 8,
               "data_offsets cover 8 bytes, expected F32 times shape [3]");
  expect_error("{" + tensor("a", "F32", "[-2]", "[0,8]") + "}", 8, "impossible shape [-2]");
  expect_error("{" + tensor("a", "F32", "[4294967296,4294967296]", "[0,8]") + "}", 8,
               "impossible shape");
  expect_error("{" + tensor("a", "F32", "[2305843009213693952]", "[0,0]") + "}", 0,
               "expected F32 times");
  expect_error("{" + tensor("a", "F32", "[2]", "[8,0]") + "}", 8, "data_offsets [8, 0]");
  expect_error("{" + tensor("a", "F32", "[2]", "[0]") + "}", 8, "data_offsets [0]");
  expect_error("{" + tensor("a", "F32", "2", "[0,8]") + "}", 8, "a.shape: expected array");
  expect_error(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8, "misses the key \"dtype\"");
  expect_error(R"({"a":7})", 0, "expected object, found integer 7");
  expect_error(R"({"__metadata__":{"format":1}})", 0, "__metadata__.format: expected string");
  expect_error("[]", 0, "expected object");
}

TEST(SafetensorsHeader, ATypeThatNobodyKnowsIsListed) {
  const auto tensors =
      parse(file_of(R"({"a":{"dtype":"F9","shape":[3],"data_offsets":[0,7]}})", 7));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_FALSE(tensors[0].dtype.has_value());
  EXPECT_EQ(tensors[0].stored_type, "F9");
}

// Fault 26.
TEST(SafetensorsHeader, RefusesImpossibleLengths) {
  EXPECT_NE(message_of<DataError>([] { parse("1234567"); }).find("not a safetensors file"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([] {
              parse(std::string(8, '\xff'));
            }).find("the header claims 18446744073709551615 bytes"),
            std::string::npos);
  std::string long_header = file_of("{}", 0);
  long_header[0] = 3;
  EXPECT_NE(
      message_of<DataError>([&] { parse(long_header); }).find("claims 3 bytes, expected at most 2"),
      std::string::npos);
}

TEST(SafetensorsHeader, WrittenHeadersReadBackAndAlignTheData) {
  const std::vector<TensorSpec> specs = {
      {"w", DType::f32, {3, 5}}, {"e", DType::bf16, {0}}, {"s\n\"", DType::i64, {}}};
  const std::string header = make_safetensors_header(specs, {{"format", "pt"}});
  EXPECT_EQ(header.size() % 4096, 0u);
  const auto tensors = parse(header + std::string(15 * 4 + 8, '\0'));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "w");
  EXPECT_EQ(tensors[0].offset_bytes, 4096);
  EXPECT_EQ(tensors[2].name, "s\n\"");
  EXPECT_EQ(tensors[2].dtype, DType::i64);
}

/// Replaces every byte of a small file by several others, and truncates it everywhere: the result
/// is an Error or content that satisfies all rules, never a crash or a silent change of layout.
TEST(SafetensorsHeader, EveryFlippedByteIsFoundOrHarmless) {
  const std::string json =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F16","shape":[1,2],"data_offsets":[8,12]}})";
  const std::string good = file_of(json, 12);
  int refused = 0;
  for (std::size_t i = 0; i < good.size() - 12; ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      if (bad == good) continue;
      try {
        std::int64_t covered = 0;
        for (const StoredTensor& tensor : parse(bad)) covered += tensor.size_bytes;
        // A name may have changed, but all bytes are accounted for.
        ASSERT_LE(covered, 12) << i << " " << value;
      } catch (const DataError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 20000);
}

// Fault 26.
TEST(SafetensorsHeader, EveryTruncationIsRefused) {
  const std::string good = file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  const TestDirectory directory;
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string path = directory.file("t.safetensors", good.substr(0, size));
    EXPECT_THROW(read_safetensors_header(File::open_for_reading(path)), DataError) << size;
    EXPECT_THROW(parse(good.substr(0, size)), DataError) << size;
  }
  const std::string path = directory.file("t.safetensors", good);
  EXPECT_EQ(read_safetensors_header(File::open_for_reading(path)).size(), 1u);
}

}  // namespace
}  // namespace strata::train
