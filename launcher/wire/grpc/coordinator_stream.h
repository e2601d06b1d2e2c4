// The stream to the coordinator, at an agent.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "launcher/wire/event_queue.h"
#include "launcher/wire/grpc/control.grpc.pb.h"
#include "launcher/wire/grpc/message_codec.h"
#include "launcher/wire/grpc/message_queue.h"

namespace strata::launcher {

/// gRPC calls it from its threads. wait() returns before it may be destroyed.
class CoordinatorStream final
    : public grpc::ClientBidiReactor<proto::FromAgent, proto::FromCoordinator> {
 public:
  /// Begins the call. `events` gets what comes.
  CoordinatorStream(proto::Control::Stub& stub, const std::string& token,
                    EventQueue<WireEvent>& events);

  /// Sends, or drops the message if the stream has ended. Any thread may call.
  void send(proto::FromAgent message);
  /// Ends the stream once all is sent.
  void end();
  /// Ends the stream at once.
  void cancel() { context_.TryCancel(); }
  /// Waits until the stream is done; returns why it is.
  grpc::Status wait();
  /// The run that let the agent in; empty: none. Call it after wait().
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] bool is_refused() const { return refused_; }

  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void receive();
  void stop_writing();

  EventQueue<WireEvent>& events_;
  grpc::ClientContext context_;
  proto::FromCoordinator received_;
  std::string run_id_;
  bool refused_ = false;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  MessageQueue<proto::FromAgent> queue_;
  bool ending_ = false;   ///< takes no more messages
  bool stopped_ = false;  ///< its hold on the call is released
  bool done_ = false;
  grpc::Status status_;
};

}  // namespace strata::launcher
