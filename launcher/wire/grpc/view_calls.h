// The coordinator's end of questions from those who look at a run.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "launcher/wire/control_wire.h"
#include "launcher/wire/event_queue.h"
#include "launcher/wire/grpc/control.pb.h"

namespace strata::launcher {

namespace proto = strata::control::v1;

class ViewReactor;

/// The questions that are not answered yet. Any thread may call.
class ViewCalls {
 public:
  /// More are refused.
  static constexpr std::size_t kMost = 256;

  /// `events` gets the questions.
  explicit ViewCalls(EventQueue<WireEvent>& events) : events_(events) {}

  /// Takes a question whose answer goes to `answer`.
  grpc::ServerUnaryReactor* ask(const ViewQuestion& question, proto::ViewAnswer& answer);
  /// Returns what ends a call with this error.
  static grpc::ServerUnaryReactor* refuse(const grpc::Status& status);

  void answer(std::uint64_t number, const std::string& json);
  /// Refuses new questions, and waits until those that are answered have been sent.
  void close(std::chrono::milliseconds limit);
  /// Waits until no call is left: the server has been shut down.
  void wait();

 private:
  friend class ViewReactor;

  void leave(std::uint64_t number);
  void end(std::uint64_t number);

  EventQueue<WireEvent>& events_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, ViewReactor*> calls_;
  bool closing_ = false;
};

}  // namespace strata::launcher
