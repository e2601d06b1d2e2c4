// The coordinator's end of the connections: a gRPC server with one stream for each agent.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/wire/control_wire.h"
#include "launcher/wire/event_queue.h"
#include "launcher/wire/grpc/control.grpc.pb.h"
#include "launcher/wire/grpc/message_codec.h"
#include "launcher/wire/grpc/view_calls.h"

namespace strata::launcher {

class AgentStream;

class CoordinatorServer final : public ControlWire, public proto::Control::CallbackService {
 public:
  explicit CoordinatorServer(const ListenSettings& settings);
  ~CoordinatorServer() override;

  [[nodiscard]] int poll_fd() const override { return events_.poll_fd(); }
  [[nodiscard]] std::vector<WireEvent> take() override { return events_.take(); }
  void send(const SendToAgent& message) override;
  void send(const SendToCoordinator& message) override;
  void fetch_output(const std::string& host, const std::string& agent,
                    std::uint64_t number) override;
  void send(const RecentOutput::Piece& output) override;
  void answer(std::uint64_t number, const std::string& json) override;
  void close(std::chrono::milliseconds limit) override;

  grpc::ServerBidiReactor<proto::FromAgent, proto::FromCoordinator>* Attach(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const proto::StatusRequest* request,
                                   proto::ViewAnswer* answer) override;
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const proto::StopRequest* request,
                                 proto::ViewAnswer* answer) override;
  grpc::ServerUnaryReactor* Logs(grpc::CallbackServerContext* context,
                                 const proto::LogsRequest* request,
                                 proto::ViewAnswer* answer) override;
  grpc::ServerUnaryReactor* Wait(grpc::CallbackServerContext* context,
                                 const proto::WaitRequest* request,
                                 proto::ViewAnswer* answer) override;

  // For streams, from any thread.
  [[nodiscard]] bool accepts_token(const grpc::CallbackServerContext& context) const;
  /// Returns why an agent may not come; nullopt: it may.
  [[nodiscard]] std::optional<NotWelcome> refusal(const Hello& hello,
                                                  const Introduction& introduction) const;
  [[nodiscard]] const Welcomed& welcome() const { return settings_.welcome; }
  /// Words to the agent go to this stream from now on.
  void attach(AgentStream& stream, const Hello& hello);
  void tell(WireEvent event) { events_.put(std::move(event)); }
  void end(AgentStream& stream);

 private:
  using AgentName = std::pair<std::string, std::string>;  ///< host, agent

  grpc::ServerUnaryReactor* take(const grpc::CallbackServerContext& context,
                                 const ViewQuestion& question, proto::ViewAnswer& answer);
  /// Returns the stream of another agent of the same host that lives; null: there is none.
  [[nodiscard]] const AgentStream* other_agent(const Hello& hello) const;

  const ListenSettings settings_;
  EventQueue<WireEvent> events_;
  ViewCalls views_{events_};
  mutable std::mutex mutex_;
  std::condition_variable stream_ended_;
  std::set<AgentStream*> streams_;
  std::map<AgentName, AgentStream*> attached_;  ///< the newest stream of each agent
  bool closing_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace strata::launcher
