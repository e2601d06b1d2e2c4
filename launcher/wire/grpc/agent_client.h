// An agent's end of the connections: one stream to the coordinator, made again when it breaks.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "launcher/wire/control_wire.h"
#include "launcher/wire/event_queue.h"
#include "launcher/wire/grpc/control.grpc.pb.h"
#include "launcher/wire/grpc/message_codec.h"

namespace strata::launcher {

class CoordinatorStream;

class AgentClient final : public ControlWire {
 public:
  explicit AgentClient(const AttachSettings& settings);
  ~AgentClient() override;

  [[nodiscard]] int poll_fd() const override { return events_.poll_fd(); }
  [[nodiscard]] std::vector<WireEvent> take() override { return events_.take(); }
  void send(const SendToAgent& message) override;
  void send(const SendToCoordinator& message) override;
  void fetch_output(const std::string& host, const std::string& agent,
                    std::uint64_t number) override;
  void send(const RecentOutput::Piece& output) override;
  void answer(std::uint64_t number, const std::string& json) override;
  std::string settle_run() override;
  void end_run(int exit_code) override;
  void close(std::chrono::milliseconds limit) override;

 private:
  /// Connects until it is told to end; runs in a thread of its own.
  void keep_connected();
  /// Holds one stream for as long as it lives. Returns false if there shall be no other.
  bool connect_once();
  /// Lets the run that listens there say that a host with another secret has come. This believes
  /// the certificate that was shown, and so tells nothing: the call is one without a token.
  void come_without_secret(const std::string& certificate);

  const AttachSettings settings_;
  EventQueue<WireEvent> events_;
  std::mutex mutex_;
  std::condition_variable ending_changed_;
  bool ending_ = false;
  bool has_come_ = false;  ///< to a run with another secret, which was told so
  std::string run_id_;     ///< of the run that let it in
  std::unique_ptr<proto::Control::Stub> stub_;
  CoordinatorStream* stream_ = nullptr;  ///< the one that stands
  grpc::ClientContext* call_ = nullptr;  ///< that of come_without_secret() under way
  std::thread connector_;
};

}  // namespace strata::launcher
