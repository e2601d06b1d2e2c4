// Connections to the coordinator of a run: how they are made, and why they failed.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace strata::launcher {

struct ChannelSettings {
  std::string target;       ///< "10.0.0.1:29500"
  std::string certificate;  ///< of the run
  int most_bytes = 0;       ///< of a message that is received
};

/// Begins to connect, without a proxy, and connects again after a connection broke. The other side
/// must show the certificate.
std::shared_ptr<grpc::Channel> make_channel(const ChannelSettings& settings);

/// Returns the part of the secret because of which a call failed; null: none.
const char* secret_that_differs(const grpc::Status& status);

/// Says in one line why a call failed: who does not listen, or listens and is no mlaunch.
std::string reason_of(const grpc::Status& status);

}  // namespace strata::launcher
