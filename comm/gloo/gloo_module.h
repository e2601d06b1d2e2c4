// The interface of libstrata_gloo.so, the one part of Strata that links Gloo and libcrypto. A run
// on several hosts opens it, so that programs start on machines without them.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/host_layout.h"
#include "comm/hosts/host_link.h"
#include "core/rank_context.h"

namespace strata::comm {

/// Facts that a rank's connections with other hosts are made from.
struct GlooPlace {
  int rank = 0;
  HostLayout layout;
  std::string host;     ///< name of this host, for messages of peers
  std::string address;  ///< IP address of this host, on which the rank listens
  std::string run_id;
  int attempt = 0;
  std::string secret;  ///< what the run's ranks alone know
  std::shared_ptr<KeyValueStore> store;
  std::chrono::milliseconds start_limit{60'000};  ///< longest wait for a rank to come
};

/// Name and type of the module's only entry. It throws what make_gloo_link does. The caller owns
/// the result; the module stays loaded until the process ends.
inline constexpr const char* kGlooModuleEntry = "strata_make_gloo_link";
using GlooModuleEntry = HostLink* (*)(const GlooPlace& place);

/// Collective over all ranks: opens libstrata_gloo.so beside the program or in ../lib and connects
/// with every rank of other hosts. Both ends of a connection prove that they know the secret.
/// Throws HostError that says what is missing, the module or the library; ConfigError when the
/// address is not one of this host; PeerError when a rank does not come in time, or is of another
/// run.
std::unique_ptr<HostLink> make_gloo_link(const GlooPlace& place);

}  // namespace strata::comm
