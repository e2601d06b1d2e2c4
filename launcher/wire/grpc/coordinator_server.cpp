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

using Words = std::vector<std::string>;

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// Returns the option that has its value in word `i`: --zero of --zero=3, or of --zero 3. "": none.
std::string option_at(const Words& command, std::size_t i) {
  if (i >= command.size()) return "";
  const std::string& word = command[i];
  if (is_option(word)) return word.substr(0, word.find('=') == word.npos ? 0 : word.find('='));
  const bool is_value = i > 0 && is_option(command[i - 1]) && command[i - 1].find('=') == word.npos;
  return is_value ? command[i - 1] : "";
}

/// Says where two commands differ first; "": nowhere.
std::string difference(const Words& its, const Words& own) {
  for (std::size_t i = 0; i < std::max(its.size(), own.size()); ++i) {
    const auto word = [i](const Words& command) {
      return i < command.size() ? "'" + command[i] + "'" : std::string("nothing");
    };
    if (word(its) == word(own)) continue;
    const std::string option = option_at(its, i);
    const std::string what = i == 0 ? "the program"
                             : !option.empty() && option == option_at(own, i)
                                 ? option
                                 : fmt::format("argument {}", i);
    return fmt::format("{} is {} on this host and {} there", what, word(its), word(own));
  }
  return "";
}

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
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastBetweenPingsMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kBetweenPingsMs);
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

std::optional<NotWelcome> CoordinatorServer::refusal(const Hello& hello,
                                                     const Introduction& introduction) const {
  const std::lock_guard lock(mutex_);
  if (introduction.protocol != kControlProtocol)
    return NotWelcome{
        fmt::format("this host speaks version {} of the control protocol, the "
                    "coordinator {}: install the same Strata everywhere",
                    introduction.protocol, kControlProtocol)};
  if (introduction.build != settings_.build)
    return NotWelcome{
        fmt::format("this host has Strata {}, the coordinator {}: install the same "
                    "everywhere",
                    introduction.build, settings_.build)};
  // One that was started anew may be meant: the scheduler shall start this host anew, too.
  if (!introduction.run_id.empty() && introduction.run_id != settings_.welcome.run_id)
    return NotWelcome{fmt::format("this host takes part in run {}, and the coordinator has run {}",
                                  introduction.run_id, settings_.welcome.run_id),
                      static_cast<int>(ExitCode::try_again)};
  if (std::cmp_not_equal(introduction.host_count, settings_.hosts.size()))
    return NotWelcome{
        fmt::format("this host was told --nnodes {}, the coordinator {}: give all "
                    "of them the same",
                    introduction.host_count, settings_.hosts.size())};
  if (const std::string differs = difference(introduction.command, settings_.command);
      !differs.empty())
    return NotWelcome{"its ranks would run another command than those of the coordinator: " +
                      differs + "; give all hosts the same"};
  if (const AgentStream* other = other_agent(hello))
    return NotWelcome{
        fmt::format("host {} is there already ({}), and answers: give each host a "
                    "--node-rank of its own",
                    hello.host, other->host_name())};
  if (std::ranges::find(settings_.hosts, hello.host) == settings_.hosts.end())
    return NotWelcome{
        fmt::format("the run has hosts {} to {}, and this is {}: give all of them "
                    "the same --nnodes",
                    settings_.hosts.front(), settings_.hosts.back(), hello.host)};
  return {};
}

/// The mutex is held.
const AgentStream* CoordinatorServer::other_agent(const Hello& hello) const {
  for (const auto& [name, stream] : attached_)
    if (name.first == hello.host && name.second != hello.agent && stream->silence() < kAnswers)
      return stream;
  return nullptr;
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
