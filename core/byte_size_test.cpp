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
      {"4.1GB", 4'100'000'000},
      {"1.1TB", 1'100'000'000'000},
      {"0.9999999999GB", 999'999'999},
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

TEST(ByteSize, RatesAreOfBytesOrOfBits) {
  const struct {
    const char* text;
    std::int64_t bytes_per_second;
  } rows[] = {
      {"12GB/s", 12'000'000'000},    {"1.5 GB/s", 1'500'000'000},  {"16GiB/s", 16 * kGiB},
      {"12gB/s", 12'000'000'000},    {"12GBps", 12'000'000'000},   {"400Gb/s", 50'000'000'000},
      {"400Gbit/s", 50'000'000'000}, {"400Gbps", 50'000'000'000},  {"400 Gb/s", 50'000'000'000},
      {"400gbit/s", 50'000'000'000}, {"8Gibit/s", kGiB},           {"25/s", 25},
      {"400GBIT/s", 50'000'000'000}, {"1.5Tb/s", 187'500'000'000}, {"800bit/s", 100},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(parse_byte_rate(row.text), row.bytes_per_second);
    EXPECT_EQ(both_readings_of_rate(row.text), "");
  }
  for (const char* text : {"", "/s", "ps", "12GB", "400Gb", "0GB/s", "-1GB/s", "unlimited/s",
                           "fast/s", "400Gbits/s", "bit/s", "4b/s", "100gb/s", "100gbps"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(parse_byte_rate(text), std::nullopt);
  }
}

TEST(ByteSize, WhatIsReadInTwoWaysIsToldInBoth) {
  EXPECT_EQ(both_readings_of_rate("100gb/s"), "100Gbit/s for bits or 100GB/s for bytes");
  EXPECT_EQ(both_readings_of_rate("1.5 gibps"), "1.5 Gibit/s for bits or 1.5 GiB/s for bytes");
  EXPECT_EQ(both_readings_of_rate("9b/s"), "9bit/s for bits or 9B/s for bytes");
  EXPECT_EQ(both_readings_of_rate("xgb/s"), "");
  EXPECT_EQ(both_readings_of_size("24G"), "24GB (powers of 1000) or 24GiB (of 1024)");
  EXPECT_EQ(both_readings_of_size("1.5t"), "1.5TB (powers of 1000) or 1.5TiB (of 1024)");
  for (const char* text : {"24", "24GB", "7B", "7b", "G", "xG", "24q", "", "unlimited"})
    EXPECT_EQ(both_readings_of_size(text), "") << text;
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
