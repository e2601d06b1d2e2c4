#include "launcher/wire/grpc/agent_client.h"

#include <fmt/core.h>

#include <utility>

#include "core/check.h"
#include "launcher/wire/grpc/coordinator_stream.h"
#include "launcher/wire/grpc/stream_metadata.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{200};
constexpr int kFirstBackoffMs = 100, kMostBackoffMs = 1000;
// A coordinator that has lost its power ends no connection: its silence does.
constexpr int kBetweenPingsMs = 2000, kPingTimeoutMs = 3000;

std::unique_ptr<proto::Control::Stub> stub_of(const AttachSettings& settings) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = settings.secret.certificate;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kCertificateName);
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kBetweenPingsMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMostBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMostBackoffMs);
  return proto::Control::NewStub(grpc::CreateCustomChannel(
      host_and_port(settings.address, settings.port), grpc::SslCredentials(options), arguments));
}

/// Returns the part of the secret because of which a call failed; null: none.
const char* secret_that_differs(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) return "token";
  // gRPC tells of OpenSSL's reasons only so.
  if (status.error_message().find("certificate verify failed") != std::string::npos)
    return "certificate";
  return nullptr;
}

}  // namespace

AgentClient::AgentClient(const AttachSettings& settings)
    : settings_(settings), run_id_(settings.run_id), stub_(stub_of(settings)) {
  connector_ = std::thread([this] { keep_connected(); });
}

AgentClient::~AgentClient() { close(std::chrono::milliseconds(0)); }

void AgentClient::keep_connected() {
  while (connect_once()) {
    std::unique_lock lock(mutex_);
    if (ending_changed_.wait_for(lock, kBetweenTries, [this] { return ending_; })) return;
  }
}

bool AgentClient::connect_once() {
  CoordinatorStream stream(events_);
  {
    // Who hears that the connection stands finds it here.
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    stream.start(*stub_, settings_.secret.token);
    stream_ = &stream;
  }
  const grpc::Status status = stream.wait();
  const std::lock_guard lock(mutex_);
  stream_ = nullptr;
  ending_changed_.notify_all();
  if (!stream.run_id().empty()) run_id_ = stream.run_id();
  if (ending_ || stream.is_refused()) return false;
  if (const char* other = secret_that_differs(status)) {
    events_.put(NotWelcome{fmt::format(
        "the coordinator has another {}: give all hosts the same --run-secret file", other)});
    return false;
  }
  events_.put(
      CoordinatorOutOfReach{status.ok() ? "it ended the connection" : status.error_message()});
  return true;
}

void AgentClient::send(const SendToCoordinator& message) {
  const std::lock_guard lock(mutex_);
  if (stream_ != nullptr)
    stream_->send(to_proto(message.message, {.protocol = kControlProtocol,
                                             .build = settings_.build,
                                             .run_id = run_id_,
                                             .host_count = settings_.host_count,
                                             .command = settings_.command}));
}

void AgentClient::send(const SendToAgent&) {
  STRATA_CHECK(false);  // this is an agent's end
}

void AgentClient::close(std::chrono::milliseconds limit) {
  if (!connector_.joinable()) return;
  const auto until = std::chrono::steady_clock::now() + limit;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (stream_ != nullptr) stream_->end();
  }
  ending_changed_.notify_all();
  std::unique_lock lock(mutex_);
  ending_changed_.wait_until(lock, until, [this] { return stream_ == nullptr; });
  if (stream_ != nullptr) stream_->cancel();
  lock.unlock();
  connector_.join();
}

}  // namespace strata::launcher
