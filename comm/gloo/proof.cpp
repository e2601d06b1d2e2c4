#include "comm/gloo/proof.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/error.h"

namespace strata::comm {

Proof proof_of(const ProofOfRun& run, int from, int to) {
  const std::string& key = run.secret.empty() ? run.run_id : run.secret;
  const std::string message =
      fmt::format("strata hosts 1\n{}\n{}\n{}\n{}\n", run.run_id, run.attempt, from, to);
  Proof proof;
  unsigned int bytes = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &bytes);
  if (made == nullptr || bytes != proof.size())
    throw InternalError("libcrypto computes no HMAC-SHA256");
  return proof;
}

bool same_proof(const Proof& one, const Proof& other) {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace strata::comm
