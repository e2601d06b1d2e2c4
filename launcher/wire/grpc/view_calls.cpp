#include "launcher/wire/grpc/view_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace strata::launcher {

/// One question. gRPC calls it from its threads, and it deletes itself when the call is done.
class ViewReactor final : public grpc::ServerUnaryReactor {
 public:
  ViewReactor(ViewCalls& calls, std::uint64_t number, proto::ViewAnswer& answer)
      : calls_(calls), number_(number), answer_(answer) {}

  void answer(const std::string& json) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
    if (json.size() > kMostAnswerBytes)
      return Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                     fmt::format("what it would say has {} MiB, and {} are the most; ask it for "
                                 "less, as for one rank",
                                 json.size() >> 20, kMostAnswerBytes >> 20)});
    answer_.set_json(json);
    Finish(grpc::Status::OK);
  }
  [[nodiscard]] bool is_answered() {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  void OnCancel() override {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(finished_, true)) return;
      Finish(grpc::Status::CANCELLED);
    }
    calls_.leave(number_);
  }
  void OnDone() override {
    calls_.end(number_);
    delete this;
  }

 private:
  ViewCalls& calls_;
  const std::uint64_t number_;
  proto::ViewAnswer& answer_;
  std::mutex mutex_;
  bool finished_ = false;
};

namespace {

/// Ends a call at once.
class RefusedCall final : public grpc::ServerUnaryReactor {
 public:
  explicit RefusedCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerUnaryReactor* ViewCalls::refuse(const grpc::Status& status) {
  return new RefusedCall(status);
}

grpc::ServerUnaryReactor* ViewCalls::ask(const ViewQuestion& question, proto::ViewAnswer& answer) {
  const std::lock_guard lock(mutex_);
  if (closing_) return refuse({grpc::StatusCode::UNAVAILABLE, "the run has ended"});
  if (calls_.size() >= kMost)
    return refuse({grpc::StatusCode::RESOURCE_EXHAUSTED,
                   fmt::format("{} questions wait for an answer already", kMost)});
  auto* reactor = new ViewReactor(*this, next_, answer);  // deletes itself
  calls_[next_] = reactor;
  events_.put(ViewAsked{next_++, question});
  return reactor;
}

void ViewCalls::answer(std::uint64_t number, const std::string& json) {
  const std::lock_guard lock(mutex_);
  if (const auto found = calls_.find(number); found != calls_.end()) found->second->answer(json);
}

void ViewCalls::leave(std::uint64_t number) { events_.put(ViewLeft{number}); }

void ViewCalls::end(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  calls_.erase(number);
  ended_.notify_all();
}

void ViewCalls::close(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  closing_ = true;
  ended_.wait_for(lock, limit, [this] {
    return std::ranges::none_of(calls_,
                                [](const auto& call) { return call.second->is_answered(); });
  });
}

void ViewCalls::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return calls_.empty(); });
}

}  // namespace strata::launcher
