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
#include "launcher/wire/stranger_filter.h"

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
  std::string settle_run() override;
  void end_run(int exit_code) override;
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
  /// Lets an agent in, if it may take part: it is told so, and words to it go to this stream from
  /// now on. Otherwise returns why it may not.
  [[nodiscard]] std::optional<Refusal> let_in(AgentStream& stream, const Hello& hello,
                                              const Introduction& introduction);
  void tell(WireEvent event) { events_.put(std::move(event)); }
  /// Tells of somebody without the secret. Anybody can make such calls without end; only those that
  /// the filter lets through become events.
  void tell_of_stranger(const std::string& address) {
    if (strangers_.is_news(address)) tell(StrangerRefused{address});
  }
  void end(AgentStream& stream);

 private:
  using AgentName = std::pair<std::string, std::string>;  ///< host, agent

  grpc::ServerUnaryReactor* take(const grpc::CallbackServerContext& context,
                                 const ViewQuestion& question, proto::ViewAnswer& answer);
  [[nodiscard]] std::optional<Refusal> refusal(const Hello& hello,
                                               const Introduction& introduction) const;
  [[nodiscard]] std::optional<Refusal> difference_from(const Introduction& introduction) const;
  [[nodiscard]] std::optional<Refusal> refusal_of_run(const std::string& run_id) const;
  void hear_of_run(const std::string& run_id, bool has_had_ranks);
  void take_up(const std::string& run_id);
  /// Returns the stream of another agent of the same host that lives; null: there is none.
  [[nodiscard]] const AgentStream* other_agent(const Hello& hello) const;

  const ListenSettings settings_;
  EventQueue<WireEvent> events_;
  StrangerFilter strangers_;
  ViewCalls views_{events_};
  std::mutex mutex_;
  Welcomed welcome_;
  bool is_settled_ = false;       ///< the run keeps its id
  bool is_taken_up_ = false;      ///< it has that of another coordinator's run
  std::optional<int> exit_code_;  ///< of the run that has ended
  std::condition_variable stream_ended_;
  std::set<AgentStream*> streams_;
  std::map<AgentName, AgentStream*> attached_;  ///< the newest stream of each agent
  bool closing_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace strata::launcher
