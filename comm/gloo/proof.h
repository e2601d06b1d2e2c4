// The proof by which two ranks know that they belong to one start of one run.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace strata::comm {

using Proof = std::array<std::byte, 32>;

struct ProofOfRun {
  std::string secret;  ///< the key; empty: the run's id takes its place
  std::string run_id;
  int attempt = 0;
};

/// Returns what rank `from` shows to rank `to`: HMAC-SHA256 over run, attempt and both ranks, so
/// that a proof serves neither another rank nor the way back. Throws InternalError when libcrypto
/// fails.
Proof proof_of(const ProofOfRun& run, int from, int to);

/// Compares in a time that does not depend on where they differ.
bool same_proof(const Proof& one, const Proof& other);

}  // namespace strata::comm
