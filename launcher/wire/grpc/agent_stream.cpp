#include "launcher/wire/grpc/agent_stream.h"

#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "launcher/wire/grpc/stream_metadata.h"

namespace strata::launcher {

namespace {

/// Returns the address in gRPC's name of a peer, "ipv4:10.0.0.2:40000" or "ipv6:%5B::1%5D:40000".
std::string address_of_peer(const std::string& peer) {
  const std::size_t begin = peer.find(':') + 1, end = peer.rfind(':');
  if (begin == 0 || end <= begin) return "";
  std::string address = peer.substr(begin, end - begin);
  if (address.starts_with("%5B") && address.ends_with("%5D"))
    address = address.substr(3, address.size() - 6);
  return address;
}

}  // namespace

AgentStream::AgentStream(CoordinatorServer& server, const grpc::CallbackServerContext& context)
    : server_(server), address_(address_of_peer(context.peer())) {
  if (!server_.accepts_token(context)) {
    server_.tell_of_stranger(address_);
    finish({grpc::StatusCode::UNAUTHENTICATED, kOtherToken});
    return;
  }
  StartSendInitialMetadata();
  StartRead(&received_);
}

void AgentStream::send(proto::FromCoordinator message) {
  const std::lock_guard lock(mutex_);
  if (ending_ || finished_) return;
  if (const auto* next = queue_.push(std::move(message))) StartWrite(next);
}

void AgentStream::end() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  if (queue_.empty()) finish_locked(grpc::Status::OK);
}

void AgentStream::OnReadDone(bool ok) {
  if (!ok) return finish(grpc::Status::OK);
  try {
    receive();
  } catch (const Error& error) {
    // An agent that was let in may come again; what is wrong may be a rank's doing.
    if (hello_) return finish({grpc::StatusCode::INVALID_ARGUMENT, error.what()});
    return refuse({error.what()});
  }
  const std::lock_guard lock(mutex_);
  if (!finished_) StartRead(&received_);
}

std::chrono::nanoseconds AgentStream::silence() const {
  return std::chrono::nanoseconds(monotonic_ns() - heard_ns_.load());
}

void AgentStream::receive() {
  heard_ns_ = monotonic_ns();
  if (!hello_) {
    if (!received_.has_hello()) throw DataError("an agent's first message must be Hello");
    return begin(received_.hello());
  }
  if (received_.has_output())
    server_.tell(HostPrinted{hello_->host, hello_->agent, output_of(received_.output())});
  else
    server_.tell(AgentSaid{hello_->host, hello_->agent, from_proto(received_)});
}

void AgentStream::begin(const proto::Hello& hello) {
  const Introduction introduction = introduction_of(hello);
  hello_ = std::get<Hello>(from_proto(received_));
  hello_->address = address_;
  if (const auto refused = server_.let_in(*this, *hello_, introduction)) {
    hello_.reset();
    refuse({refused->to_agent, refused->exit_code, refused->may_wait});
  }
}

void AgentStream::refuse(const NotWelcome& refusal) {
  send(to_proto(refusal));
  end();
}

void AgentStream::OnWriteDone(bool ok) {
  if (!ok) return finish(grpc::Status::CANCELLED);
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (const auto* next = queue_.written())
    StartWrite(next);
  else if (ending_)
    finish_locked(grpc::Status::OK);
}

void AgentStream::OnCancel() { finish(grpc::Status::CANCELLED); }

void AgentStream::OnDone() {
  server_.end(*this);
  delete this;
}

void AgentStream::finish(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  finish_locked(status);
}

void AgentStream::finish_locked(const grpc::Status& status) {
  if (!std::exchange(finished_, true)) Finish(status);
}

}  // namespace strata::launcher
