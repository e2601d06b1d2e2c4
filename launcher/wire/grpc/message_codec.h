// Turns what coordinator and agents tell one another into messages of control.proto, and back. What
// is received is checked: a message that no agent or coordinator writes is refused, with the field.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "launcher/control/messages.h"
#include "launcher/wire/control_wire.h"
#include "launcher/wire/grpc/control.pb.h"

namespace strata::launcher {

namespace proto = strata::control::v1;

/// What only the first message of an agent has, besides Hello.
struct Introduction {
  int protocol = kControlProtocol;
  AgreedFacts facts;
  std::string run_id;  ///< of which it has run ranks; empty: of none
};

proto::FromAgent to_proto(const AgentMessage& message, const Introduction& introduction);
proto::FromAgent to_proto(const RecentOutput::Piece& output);
proto::FromCoordinator to_proto(const CoordinatorMessage& message);
proto::FromCoordinator to_proto(const Welcomed& welcome);
proto::FromCoordinator to_proto(const NotWelcome& refusal);
proto::FromCoordinator to_proto(const OutputWanted& wanted);

/// Throws DataError that names the field which is out of range or missing.
AgentMessage from_proto(const proto::FromAgent& message);
RecentOutput::Piece output_of(const proto::Output& output);
Introduction introduction_of(const proto::Hello& hello);
std::variant<CoordinatorMessage, Welcomed, NotWelcome, OutputWanted> from_proto(
    const proto::FromCoordinator& message);

}  // namespace strata::launcher
