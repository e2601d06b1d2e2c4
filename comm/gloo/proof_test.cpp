#include "comm/gloo/proof.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace strata::comm {
namespace {

std::string hex(const Proof& proof) {
  std::string text;
  for (const std::byte byte : proof) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// printf 'strata hosts 1\nrun\n2\n0\n3\n' | openssl dgst -sha256 -hmac key
TEST(Proof, IsTheHmacThatOpensslPrints) {
  EXPECT_EQ(hex(proof_of({"key", "run", 2}, 0, 3)),
            "077e351b2bd3ddc237d4ac5e155736b7e0ca509183605250909416cae66cf1b9");
  EXPECT_EQ(hex(proof_of({"", "run", 2}, 0, 3)),
            "69992a1d5f7f8b7c2088f4a253c4b851305da696ac1689a827368641e582b2ac")
      << "the run's id is the key";
}

// Fault 31.
TEST(Proof, ServesOneWayBetweenTwoRanksOfOneStart) {
  const Proof proof = proof_of({"key", "run", 2}, 0, 3);
  EXPECT_TRUE(same_proof(proof, proof_of({"key", "run", 2}, 0, 3)));
  EXPECT_FALSE(same_proof(proof, proof_of({"key", "run", 2}, 3, 0)));
  EXPECT_FALSE(same_proof(proof, proof_of({"key", "run", 2}, 0, 4)));
  EXPECT_FALSE(same_proof(proof, proof_of({"key", "run", 3}, 0, 3)));
  EXPECT_FALSE(same_proof(proof, proof_of({"key", "other", 2}, 0, 3)));
  EXPECT_FALSE(same_proof(proof, proof_of({"other", "run", 2}, 0, 3)));
}

}  // namespace
}  // namespace strata::comm
