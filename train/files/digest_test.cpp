#include "train/files/digest.h"

#include <gtest/gtest.h>

#include <vector>

namespace strata::train {
namespace {

std::vector<float> values(std::size_t count) {
  std::vector<float> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = static_cast<float>(i) * 0.5F;
  return v;
}

Digest part_digest(const std::vector<float>& v, std::int64_t flat_begin, std::size_t begin,
                   std::size_t end) {
  return range_digest("w", "master", flat_begin, static_cast<std::int64_t>(begin),
                      std::as_bytes(std::span(v).subspan(begin, end - begin)), 4);
}

TEST(Digest, DoesNotDependOnWhoHoldsWhichCells) {
  const std::vector<float> v = values(5000);
  const std::int64_t flat_begin =
      384;  // the tensor begins inside of a cell: 640 elements to its end
  const Digest whole = part_digest(v, flat_begin, 0, 5000);
  for (std::size_t a = 640; a < 5000; a += 1024)
    for (std::size_t b = a; b < 5000; b += 1024)
      EXPECT_EQ(part_digest(v, flat_begin, a, b) + part_digest(v, flat_begin, b, 5000) +
                    part_digest(v, flat_begin, 0, a),
                whole);
}

TEST(Digest, IsTheSumOfPieces) {
  const std::vector<float> v = values(1500);
  const auto bytes = std::as_bytes(std::span(v));
  EXPECT_EQ(part_digest(v, 0, 0, 1500), piece_digest("w", "master", 0, bytes.subspan(0, 4096)) +
                                            piece_digest("w", "master", 1024, bytes.subspan(4096)));
}

/// Scales of 128 elements each: their cells are the same stretches of flat space.
TEST(DigestDeathTest, OfValuesOfBlocksDoesNotDependOnWhoHoldsWhichCells) {
  const std::vector<float> v = values(40);
  const std::int64_t flat_begin = 3;  // 5 scales up to the end of the cell
  const auto part = [&](std::size_t begin, std::size_t end) {
    return range_digest("w", "moment1_scale", flat_begin, static_cast<std::int64_t>(begin),
                        std::as_bytes(std::span(v).subspan(begin, end - begin)), 4, 128);
  };
  for (std::size_t a = 5; a < 40; a += 8) EXPECT_EQ(part(0, a) + part(a, 40), part(0, 40)) << a;
  EXPECT_DEATH(part(4, 40), "inside of a cell");
}

TEST(Digest, NameKindPlaceAndBytesMatter) {
  std::vector<float> v = values(100);
  const auto bytes = std::as_bytes(std::span(v));
  const Digest digest = piece_digest("a", "b", 0, bytes);
  EXPECT_NE(digest, piece_digest("x", "b", 0, bytes));
  EXPECT_NE(digest, piece_digest("a", "x", 0, bytes));
  EXPECT_NE(digest, piece_digest("ab", "", 0, bytes));
  EXPECT_NE(digest, piece_digest("a", "b", 1024, bytes));
  v[99] = 1;
  EXPECT_NE(digest, piece_digest("a", "b", 0, bytes));
}

TEST(DigestDeathTest, ARangeMayNotBeginInsideACell) {
  const std::vector<float> v = values(2048);
  EXPECT_DEATH(part_digest(v, 0, 100, 2048), "inside of a cell");
}

}  // namespace
}  // namespace strata::train
