// How both ends of a connection prove that they belong to the run.
#pragma once

#include <string>
#include <string_view>

namespace strata::launcher {

/// Metadata of a call that holds the token of the run.
inline constexpr const char* kTokenMetadata = "strata-token";
/// The name in the run's certificate, whatever the coordinator's host is called.
inline constexpr const char* kCertificateName = "strata-run";
/// Larger messages end the connection.
inline constexpr int kMostMessageBytes = 4 << 20;

/// Compares in a time that does not depend on where two texts of one length differ.
inline bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace strata::launcher
