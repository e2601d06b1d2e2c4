// The entry of libstrata_control.so.
#include "launcher/wire/grpc/agent_client.h"
#include "launcher/wire/grpc/coordinator_server.h"
#include "launcher/wire/grpc/make_secret.h"
#include "launcher/wire/grpc/quiet_log.h"
#include "launcher/wire/grpc/view_client.h"

namespace strata::launcher {
namespace {

class GrpcModule final : public ControlModule {
 public:
  std::unique_ptr<ControlWire> listen(const ListenSettings& settings) override {
    return std::make_unique<CoordinatorServer>(settings);
  }
  std::unique_ptr<ControlWire> attach(const AttachSettings& settings) override {
    return std::make_unique<AgentClient>(settings);
  }
  std::unique_ptr<ViewWire> view(const ViewSettings& settings) override {
    return std::make_unique<ViewClient>(settings);
  }
  RunSecret make_secret() override { return launcher::make_secret(); }
};

}  // namespace
}  // namespace strata::launcher

extern "C" [[gnu::visibility("default")]] strata::launcher::ControlModule*
strata_make_control_module() {
  strata::launcher::silence_grpc();
  return new strata::launcher::GrpcModule();
}
