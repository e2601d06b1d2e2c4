#include "launcher/wire/grpc/coordinator_stream.h"

#include <utility>

#include "core/error.h"
#include "launcher/wire/grpc/stream_metadata.h"

namespace strata::launcher {

void CoordinatorStream::start(proto::Control::Stub& stub, const std::string& token) {
  context_.AddMetadata(kTokenMetadata, token);
  stub.async()->Attach(&context_, this);
  AddHold();  // writes begin outside of reactions
  StartRead(&received_);
  StartCall();
}

void CoordinatorStream::send(proto::FromAgent message) {
  const std::lock_guard lock(mutex_);
  introduced_ |= message.has_hello();
  if (ending_ || stopped_ || !introduced_) return;
  if (const auto* next = queue_.push(std::move(message))) StartWrite(next);
}

void CoordinatorStream::end() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ending_, true)) return;
  if (queue_.empty()) stop_writing();
}

/// The mutex is held.
void CoordinatorStream::stop_writing() {
  if (std::exchange(stopped_, true)) return;
  if (ending_) StartWritesDone();
  RemoveHold();
}

void CoordinatorStream::OnReadInitialMetadataDone(bool ok) {
  if (ok) events_.put(Connected{});
}

void CoordinatorStream::OnReadDone(bool ok) {
  if (!ok) {
    const std::lock_guard lock(mutex_);
    return stop_writing();
  }
  try {
    receive();
  } catch (const Error& error) {
    events_.put(CoordinatorOutOfReach{error.what()});
    return cancel();
  }
  StartRead(&received_);
}

void CoordinatorStream::receive() {
  auto content = from_proto(received_);
  if (auto* message = std::get_if<CoordinatorMessage>(&content)) {
    events_.put(CoordinatorSaid{std::move(*message)});
  } else if (const auto* wanted = std::get_if<OutputWanted>(&content)) {
    events_.put(*wanted);
  } else if (auto* welcome = std::get_if<Welcomed>(&content)) {
    run_id_ = welcome->run_id;
    events_.put(std::move(*welcome));
  } else {
    refusal_ = std::get<NotWelcome>(std::move(content));
    events_.put(*refusal_);
  }
}

void CoordinatorStream::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  if (!ok) return stop_writing();
  if (const auto* next = queue_.written())
    StartWrite(next);
  else if (ending_)
    stop_writing();
}

void CoordinatorStream::OnDone(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  done_ = true;
  status_ = status;
  done_changed_.notify_all();
}

grpc::Status CoordinatorStream::wait() {
  std::unique_lock lock(mutex_);
  done_changed_.wait(lock, [this] { return done_; });
  return status_;
}

}  // namespace strata::launcher
