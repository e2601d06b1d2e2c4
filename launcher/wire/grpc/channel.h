// Connections to the coordinator of a run: how they are made, and why they failed.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

namespace strata::launcher {

struct ChannelSettings {
  std::string target;       ///< "10.0.0.1:29500"
  std::string certificate;  ///< of the run
  int most_bytes = 0;       ///< of a message that is received
};
struct ListeningPlace {
  std::string address;
  int port = 0;
};

/// Begins to connect, without a proxy, and connects again after a connection broke. The other side
/// must show the certificate.
std::shared_ptr<grpc::Channel> make_channel(const ChannelSettings& settings);

/// The part of a run's secret that is not the same on both sides.
struct OtherSecret {
  const char* part = "";         ///< "token", or "certificate"
  std::string certificate = {};  ///< the one that was shown, if that is the part: PEM
};

/// Returns the part of the secret because of which a call failed; nullopt: none. Other programs
/// have certificates, too: it looks whose name is in the one that is shown at the place, for two
/// seconds at most.
std::optional<OtherSecret> secret_that_differs(const grpc::Status& status,
                                               const ListeningPlace& place);

/// Says in one line why a call failed: who does not listen, or listens and is no mlaunch.
std::string reason_of(const grpc::Status& status);

}  // namespace strata::launcher
