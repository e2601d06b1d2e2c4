#include "launcher/wire/grpc/coordinator_server.h"

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "launcher/wire/grpc/agent_stream.h"
#include "launcher/wire/grpc/stream_metadata.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

// A connection that is silent ends after this time, before and after its TLS handshake.
constexpr int kHandshakeMs = 5000;
constexpr int kIdleMs = 10'000;

}  // namespace

CoordinatorServer::CoordinatorServer(const ListenSettings& settings) : settings_(settings) {
  check_listening_address(settings_.address, settings_.port);
  grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back({settings_.secret.key, settings_.secret.certificate});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(host_and_port(settings_.address, settings_.port),
                           grpc::SslServerCredentials(options), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0)
    throw HostError(fmt::format("cannot listen at {}: is its secret a whole one?",
                                host_and_port(settings_.address, settings_.port)));
}

CoordinatorServer::~CoordinatorServer() { close(std::chrono::milliseconds(0)); }

grpc::ServerBidiReactor<proto::FromAgent, proto::FromCoordinator>* CoordinatorServer::Attach(
    grpc::CallbackServerContext* context) {
  auto* stream = new AgentStream(*this, *context);  // deletes itself
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
  return stream;
}

bool CoordinatorServer::accepts_token(const grpc::CallbackServerContext& context) const {
  const auto found = context.client_metadata().find(kTokenMetadata);
  return found != context.client_metadata().end() &&
         equal_secrets({found->second.data(), found->second.size()}, settings_.secret.token);
}

std::string CoordinatorServer::refusal(const Introduction& introduction) const {
  if (introduction.protocol != kControlProtocol)
    return fmt::format(
        "this host speaks version {} of the control protocol, the coordinator {}: "
        "install the same Strata everywhere",
        introduction.protocol, kControlProtocol);
  if (introduction.build != settings_.build)
    return fmt::format("this host has Strata {}, the coordinator {}: install the same everywhere",
                       introduction.build, settings_.build);
  if (!introduction.run_id.empty() && introduction.run_id != settings_.welcome.run_id)
    return fmt::format("this host has had ranks of run {}, and the coordinator has run {}",
                       introduction.run_id, settings_.welcome.run_id);
  return "";
}

void CoordinatorServer::attach(AgentStream& stream, const Hello& hello) {
  {
    const std::lock_guard lock(mutex_);
    attached_[{hello.host, hello.agent}] = &stream;
  }
  tell(AgentSaid{hello.host, hello.agent, hello});
}

void CoordinatorServer::end(AgentStream& stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(&stream);
  for (auto at = attached_.begin(); at != attached_.end(); ++at) {
    if (at->second != &stream) continue;
    tell(ConnectionBroke{at->first.first, at->first.second});
    attached_.erase(at);
    break;
  }
  stream_ended_.notify_all();
}

void CoordinatorServer::send(const SendToAgent& message) {
  const std::lock_guard lock(mutex_);
  if (const auto found = attached_.find({message.host, message.agent}); found != attached_.end())
    found->second->send(to_proto(message.message));
}

void CoordinatorServer::send(const SendToCoordinator&) {
  STRATA_CHECK(false);  // this is the coordinator's end
}

void CoordinatorServer::close(std::chrono::milliseconds limit) {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(closing_, true)) return;
    for (AgentStream* stream : streams_) stream->end();
    stream_ended_.wait_for(lock, limit, [this] { return streams_.empty(); });
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  std::unique_lock lock(mutex_);
  stream_ended_.wait(lock, [this] { return streams_.empty(); });
}

}  // namespace strata::launcher
