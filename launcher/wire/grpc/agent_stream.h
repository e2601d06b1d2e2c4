// One agent's stream, at the coordinator.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "launcher/wire/grpc/coordinator_server.h"
#include "launcher/wire/grpc/message_queue.h"

namespace strata::launcher {

/// gRPC calls it from its threads, and it deletes itself when the stream is done.
class AgentStream final : public grpc::ServerBidiReactor<proto::FromAgent, proto::FromCoordinator> {
 public:
  AgentStream(CoordinatorServer& server, const grpc::CallbackServerContext& context);

  /// Sends, or drops the message if the stream ends. Any thread may call while the server knows
  /// the stream.
  void send(proto::FromCoordinator message);
  /// Ends the stream once all is sent.
  void end();
  /// Time since the agent was heard of last. Any thread may call, as for send.
  [[nodiscard]] std::chrono::nanoseconds silence() const;
  /// Name of its host, for people. Call it once the stream is attached.
  [[nodiscard]] const std::string& host_name() const { return hello_->host_name; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void receive();
  void begin(const proto::Hello& hello);
  void refuse(const NotWelcome& refusal);
  void finish(const grpc::Status& status);
  void finish_locked(const grpc::Status& status);

  CoordinatorServer& server_;
  const std::string address_;  ///< from which the agent came
  proto::FromAgent received_;
  std::optional<Hello> hello_;  ///< the first message
  std::atomic<std::int64_t> heard_ns_{0};
  std::mutex mutex_;
  MessageQueue<proto::FromCoordinator> queue_;
  bool ending_ = false;    ///< takes no more messages
  bool finished_ = false;  ///< has told gRPC so
};

}  // namespace strata::launcher
