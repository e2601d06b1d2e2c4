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
  /// `events` gets what comes.
  explicit CoordinatorStream(EventQueue<WireEvent>& events) : events_(events) {}

  /// Begins the call, once.
  void start(proto::Control::Stub& stub, const std::string& token);
  /// Sends, or drops the message if the stream has ended, or if it must have a Hello first. Any
  /// thread may call once the call has begun.
  void send(proto::FromAgent message);
  /// Ends the stream once all is sent.
  void end();
  /// Ends the stream at once.
  void cancel() { context_.TryCancel(); }
  /// Waits until the stream is done; returns why it is.
  grpc::Status wait();
  /// The run that let the agent in; empty: none. Call it after wait().
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  /// Why the agent was not let in; nullopt: it was, or nobody answered. Call it after wait().
  [[nodiscard]] const std::optional<NotWelcome>& refusal() const { return refusal_; }

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
  std::optional<NotWelcome> refusal_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  MessageQueue<proto::FromAgent> queue_;
  bool introduced_ = false;  ///< a Hello was sent
  bool ending_ = false;      ///< takes no more messages
  bool stopped_ = false;     ///< its hold on the call is released
  bool done_ = false;
  grpc::Status status_;
};

}  // namespace strata::launcher
