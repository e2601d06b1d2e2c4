// Asks a run from anywhere.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "launcher/wire/control_wire.h"
#include "launcher/wire/grpc/channel.h"
#include "launcher/wire/grpc/control.grpc.pb.h"

namespace strata::launcher {

namespace proto = strata::control::v1;

class ViewClient final : public ViewWire {
 public:
  explicit ViewClient(const ViewSettings& settings);
  [[nodiscard]] std::unique_ptr<ViewCall> ask(const ViewQuestion& question) override;

 private:
  const std::string token_;
  const ListeningPlace place_;
  const std::string secret_file_;
  const std::unique_ptr<proto::Control::Stub> stub_;
  bool was_answered_ = false;  ///< the run was there
};

}  // namespace strata::launcher
