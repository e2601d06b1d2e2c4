#include "comm/hosts/run_secret.h"

#include <fmt/ranges.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "core/error.h"
#include "core/system_call.h"

namespace strata::comm {
namespace {

constexpr const char* kKey = "hosts/secret";

std::string random_text() {
  std::array<std::uint8_t, 32> bytes{};
  if (checked(::getrandom(bytes.data(), bytes.size(), 0), "getrandom") !=
      static_cast<long>(bytes.size()))
    throw HostError("getrandom gives fewer bytes than asked for");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

std::string run_secret(KeyValueStore& store, int rank, std::chrono::milliseconds limit) {
  if (rank != 0) return store.get(kKey, limit);
  try {
    return store.get(kKey, std::chrono::milliseconds(0));
  } catch (const PeerError&) {
    // Nobody has put one; whether the store is gone shows in a moment.
  }
  const std::string secret = random_text();
  store.put(kKey, secret);
  return secret;
}

}  // namespace strata::comm
