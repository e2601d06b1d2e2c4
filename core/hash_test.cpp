#include "core/hash.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace strata {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// Values of the reference implementation (libxxhash 0.8.1).
TEST(Hash, AgreesWithTheReferenceValues) {
  EXPECT_EQ(hash_128(bytes("")).hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_128(bytes("strata")).hex(), "8f7bf5d0b6686c9649e9198681a76414");
  EXPECT_EQ(hash_64(bytes("")), 0x2d06800538d394c2U);
}

// Values of the reference implementation, built without vector instructions.
TEST(Hash, OfManyBytesDoesNotDependOnTheInstructionSet) {
  std::vector<std::byte> data(1'000'003);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * i >> 3);
  EXPECT_EQ(hash_64(data), 0xc45f20e509a00b0cU);
  EXPECT_EQ(hash_128(data).hex(), "bbd45a94b233f922c45f20e509a00b0c");
  EXPECT_EQ(hash_128(data, 77).hex(), "817819b8225f5ad7cdca74e881ef8461");
}

TEST(Hash, SeedsAndBytesMatter) {
  EXPECT_NE(hash_128(bytes("a"), 1), hash_128(bytes("a"), 2));
  EXPECT_NE(hash_128(bytes("a")), hash_128(bytes("b")));
}

TEST(Hash, SumsCarryAndCommute) {
  const Hash128 a{~0ULL, 1};
  const Hash128 b{2, ~0ULL};
  EXPECT_EQ(a + b, (Hash128{1, 1}));
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ((Hash128{0xab, 0x1}).hex(), "000000000000000100000000000000ab");
}

}  // namespace
}  // namespace strata
