#include "core/byte_size.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(ByteSize, UnitsAreDecimalOrBinary) {
  const struct {
    const char* text;
    std::int64_t bytes;
  } rows[] = {
      {"24GB", 24'000'000'000},
      {"16GiB", 16 * kGiB},
      {"16 gib", 16 * kGiB},
      {"1.5GiB", kGiB + kGiB / 2},
      {"1e3 KB", 1'000'000},
      {"17179869184", 16 * kGiB},
      {"2.4e+10", 24'000'000'000},
      {"7B", 7},
      {"0", 0},
      {"1TB", 1'000'000'000'000},
      {"3TiB", 3 * 1024 * kGiB},
      {"0.0015KB", 1},
      {"unlimited", kUnlimitedMemory},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(parse_byte_size(row.text), row.bytes);
  }
}

TEST(ByteSize, WhatIsAmbiguousOrTooLargeIsRefused) {
  for (const char* text : {"", "GB", "24G", "24Gb/s", "-1", "-1GB", "1,5GB", "1e40", "8388608TiB",
                           "9300000000GB", "nan", "inf", "24 GB x", "GB 24", "infinite"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(parse_byte_size(text), std::nullopt);
  }
}

TEST(ByteSize, TextIsShortAndReadsBackTheSame) {
  const struct {
    std::int64_t bytes;
    const char* text;
  } rows[] = {
      {24'000'000'000, "24GB"},
      {16 * kGiB, "16GiB"},
      {kGiB + kGiB / 2, "1536MiB"},
      {1'048'577, "1048577"},
      {0, "0"},
      {1'000, "1KB"},
      {1, "1"},
      {kUnlimitedMemory, "unlimited"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(byte_size_text(row.bytes), row.text);
    EXPECT_EQ(parse_byte_size(row.text), row.bytes);
  }
}

}  // namespace
}  // namespace strata
