#include "launcher/wire/grpc/coordinator_server.h"

#include <fmt/core.h>

#include <algorithm>

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
// Agents ping every two seconds. A silent host is lost by its lease, long before its connection.
constexpr int kLeastBetweenPingsMs = 500, kBetweenPingsMs = 20'000;

/// An agent that was heard of within this time lives.
constexpr std::chrono::seconds kAnswers{3};

}  // namespace

CoordinatorServer::CoordinatorServer(const ListenSettings& settings)
    : settings_(settings), welcome_(settings.welcome), is_settled_(!settings.takes_up_runs) {
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
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastBetweenPingsMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kBetweenPingsMs);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0)
    throw HostError(
        fmt::format("cannot listen at {}: another process took the port at this moment, or the "
                    "secret is no whole one",
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

grpc::ServerUnaryReactor* CoordinatorServer::Status(grpc::CallbackServerContext* context,
                                                    const proto::StatusRequest*,
                                                    proto::ViewAnswer* answer) {
  return take(*context, AskStatus{}, *answer);
}

grpc::ServerUnaryReactor* CoordinatorServer::Stop(grpc::CallbackServerContext* context,
                                                  const proto::StopRequest* request,
                                                  proto::ViewAnswer* answer) {
  return take(*context, AskStop{request->now()}, *answer);
}

grpc::ServerUnaryReactor* CoordinatorServer::Logs(grpc::CallbackServerContext* context,
                                                  const proto::LogsRequest* request,
                                                  proto::ViewAnswer* answer) {
  return take(*context,
              AskLogs{.rank = request->has_rank() ? std::optional(request->rank()) : std::nullopt,
                      .number = request->number(),
                      .from_end = request->from_end(),
                      .follow = request->follow()},
              *answer);
}

grpc::ServerUnaryReactor* CoordinatorServer::Wait(grpc::CallbackServerContext* context,
                                                  const proto::WaitRequest*,
                                                  proto::ViewAnswer* answer) {
  return take(*context, AskEnd{}, *answer);
}

/// Takes a question of who has the run's secret.
grpc::ServerUnaryReactor* CoordinatorServer::take(const grpc::CallbackServerContext& context,
                                                  const ViewQuestion& question,
                                                  proto::ViewAnswer& answer) {
  if (!accepts_token(context))
    return ViewCalls::refuse({grpc::StatusCode::UNAUTHENTICATED, kOtherToken});
  return views_.ask(question, answer);
}

void CoordinatorServer::answer(std::uint64_t number, const std::string& json) {
  views_.answer(number, json);
}

bool CoordinatorServer::accepts_token(const grpc::CallbackServerContext& context) const {
  const auto found = context.client_metadata().find(kTokenMetadata);
  return found != context.client_metadata().end() &&
         equal_secrets({found->second.data(), found->second.size()}, settings_.secret.token);
}

std::optional<Refusal> CoordinatorServer::difference_from(const Introduction& introduction) const {
  if (introduction.protocol == kControlProtocol)
    return difference(introduction.facts, settings_.facts);
  return refusal_of([&](const auto& words) {
    return fmt::format(
        "{} speaks version {} of the control protocol, {} {}: install the same "
        "Strata everywhere",
        words.them, introduction.protocol, words.us, kControlProtocol);
  });
}

/// The mutex is held.
std::optional<Refusal> CoordinatorServer::refusal(const Hello& hello,
                                                  const Introduction& introduction) const {
  std::optional<Refusal> differs = difference_from(introduction);
  if (differs && hello.has_had_ranks) {
    differs->may_wait = true;  // this one was mistyped, or is of another run, as is its end
    return differs;
  }
  if (exit_code_) {
    const std::string text = *exit_code_ == 0
                                 ? "the run has ended"
                                 : fmt::format("the run has ended with code {}", *exit_code_);
    return Refusal{text, text, *exit_code_};
  }
  if (differs) return differs;
  if (hello.has_had_ranks)
    if (auto other = refusal_of_run(introduction.run_id)) return other;
  if (const AgentStream* other = other_agent(hello)) {
    const std::string text = fmt::format(
        "host {} is there already ({}), and answers: give each host a --node-rank of "
        "its own",
        hello.host, other->host_name());
    // An agent that follows one that has just died may come before that is seen.
    return Refusal{text, text, static_cast<int>(ExitCode::try_again)};
  }
  if (std::ranges::find(settings_.hosts, hello.host) == settings_.hosts.end()) {
    const std::string hosts =
        fmt::format("the run has hosts {} to {}", settings_.hosts.front(), settings_.hosts.back());
    const std::string advice = "give all of them the same --nnodes";
    return Refusal{fmt::format("{}, and this is {}: {}", hosts, hello.host, advice),
                   fmt::format("{}: {}", hosts, advice)};
  }
  return {};
}

/// A host that was started anew may be meant: the scheduler shall start the one that asks anew,
/// too.
std::optional<Refusal> CoordinatorServer::refusal_of_run(const std::string& run_id) const {
  if (run_id.empty() || run_id == welcome_.run_id || !is_settled_) return {};
  Refusal refusal = refusal_of([&](const auto& words) {
    return fmt::format("{} has taken part in run {}, and {} has begun run {}", words.them, run_id,
                       words.us, welcome_.run_id);
  });
  refusal.exit_code = static_cast<int>(ExitCode::try_again);
  return refusal;
}

/// The mutex is held.
const AgentStream* CoordinatorServer::other_agent(const Hello& hello) const {
  for (const auto& [name, stream] : attached_)
    if (name.first == hello.host && name.second != hello.agent && stream->silence() < kAnswers)
      return stream;
  return nullptr;
}

std::optional<Refusal> CoordinatorServer::let_in(AgentStream& stream, const Hello& hello,
                                                 const Introduction& introduction) {
  const std::lock_guard lock(mutex_);
  if (auto refused = refusal(hello, introduction)) {
    if (!exit_code_)
      tell(HostRefused{hello.host, hello.host_name, hello.address, refused->to_coordinator,
                       refused->may_wait && !is_settled_, refused->exit_code});
    return refused;
  }
  hear_of_run(introduction.run_id, hello.has_had_ranks);
  strangers_.let_in(hello.address);
  stream.send(to_proto(welcome_));
  attached_[{hello.host, hello.agent}] = &stream;
  tell(AgentSaid{hello.host, hello.agent, hello});
  return {};
}

/// The mutex is held. Agents tell of the run that let them in last. One without ranks may have been
/// let in by this coordinator, before its connection broke, or by one that began nothing; but it
/// may also be a spare, and all that is left of a run.
void CoordinatorServer::hear_of_run(const std::string& run_id, bool has_had_ranks) {
  if (run_id.empty()) return;
  if (run_id != welcome_.run_id && !is_settled_ && (has_had_ranks || !is_taken_up_))
    take_up(run_id);
  is_settled_ |= has_had_ranks;
}

/// The mutex is held.
void CoordinatorServer::take_up(const std::string& run_id) {
  is_taken_up_ = true;
  welcome_.run_id = run_id;
  for (const auto& [name, stream] : attached_) stream->send(to_proto(welcome_));
  tell(RunTakenUp{run_id});
}

std::string CoordinatorServer::settle_run() {
  const std::lock_guard lock(mutex_);
  is_settled_ = true;
  return welcome_.run_id;
}

void CoordinatorServer::end_run(int exit_code) {
  const std::lock_guard lock(mutex_);
  exit_code_ = exit_code;
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

void CoordinatorServer::fetch_output(const std::string& host, const std::string& agent,
                                     std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (const auto found = attached_.find({host, agent}); found != attached_.end())
    found->second->send(to_proto(OutputWanted{number}));
}

void CoordinatorServer::send(const RecentOutput::Piece&) {
  STRATA_CHECK(false);  // this is the coordinator's end
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
  views_.close(limit);
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  views_.wait();
  std::unique_lock lock(mutex_);
  stream_ended_.wait(lock, [this] { return streams_.empty(); });
}

}  // namespace strata::launcher
