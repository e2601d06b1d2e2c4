// How both ends of a connection prove that they belong to the run.
#pragma once

#include <openssl/crypto.h>

#include <string_view>

namespace strata::launcher {

/// Metadata of a call that holds the token of the run.
inline constexpr const char* kTokenMetadata = "strata-token";
/// Why a call with another one fails.
inline constexpr const char* kOtherToken = "this is not the token of the run";
/// The name in the run's certificate, whatever the coordinator's host is called.
inline constexpr const char* kCertificateName = "strata-run";
/// Larger messages end the connection.
inline constexpr int kMostMessageBytes = 4 << 20;

/// Compares in a time that does not depend on where two texts of one length differ.
inline bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace strata::launcher
