#include "launcher/wire/grpc/view_client.h"

#include <fmt/core.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "launcher/wire/grpc/channel.h"
#include "launcher/wire/grpc/stream_metadata.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

/// The run that is asked.
struct AskedPlace {
  ListeningPlace listening;
  std::string secret_file;
};

/// Throws for a call that failed.
[[noreturn]] void refuse(const AskedPlace& asked, const grpc::Status& status) {
  const ListeningPlace& listening = asked.listening;
  const std::string place = host_and_port(listening.address, listening.port);
  if (const auto other = secret_that_differs(status, listening))
    throw ConfigError(fmt::format(
        "{} is not that of the run at {} (the {} differs); give --run-secret the file that the run "
        "was given, or a copy of it",
        secret_for_people(asked.secret_file), place, other->part));
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    throw HostError(fmt::format("the run at {} belongs to another version of mlaunch", place));
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
    throw HostError(
        fmt::format("the run at {} does not answer: {}", place, status.error_message()));
  throw HostError(fmt::format("no run answers at {}: {}", place, reason_of(status)));
}

/// A call, from its beginning to its end.
class GrpcViewCall final : public ViewCall {
 public:
  GrpcViewCall(AskedPlace place, const std::string& token, bool& was_answered)
      : place_(std::move(place)), was_answered_(was_answered) {
    context_.AddMetadata(kTokenMetadata, token);
  }
  ~GrpcViewCall() override {
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
  }

  void start(proto::Control::Stub& stub, const ViewQuestion& question) {
    auto* calls = stub.async();
    const auto done = [this](const grpc::Status& status) { end(status); };
    if (const auto* stop = std::get_if<AskStop>(&question)) {
      stop_.set_now(stop->now);
      calls->Stop(&context_, &stop_, &answer_, done);
    } else if (const auto* logs = std::get_if<AskLogs>(&question)) {
      if (logs->rank) logs_.set_rank(*logs->rank);
      logs_.set_number(logs->number);
      logs_.set_from_end(logs->from_end);
      logs_.set_follow(logs->follow);
      calls->Logs(&context_, &logs_, &answer_, done);
    } else if (std::holds_alternative<AskStatus>(question)) {
      calls->Status(&context_, &status_, &answer_, done);
    } else {
      calls->Wait(&context_, &wait_, &answer_, done);
    }
  }

  bool wait(std::chrono::milliseconds limit) override {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return done_; });
  }

  std::optional<std::string> answer() override {
    if (result_.ok()) {
      was_answered_ = true;
      return answer_.json();
    }
    if (was_answered_ && result_.error_code() == grpc::StatusCode::UNAVAILABLE) return {};
    refuse(place_, result_);
  }

 private:
  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    result_ = status;
    done_ = true;
    changed_.notify_all();
  }

  const AskedPlace place_;
  bool& was_answered_;
  grpc::ClientContext context_;
  proto::StatusRequest status_;
  proto::StopRequest stop_;
  proto::LogsRequest logs_;
  proto::WaitRequest wait_;
  proto::ViewAnswer answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  grpc::Status result_;
};

}  // namespace

ViewClient::ViewClient(const ViewSettings& settings)
    : token_(settings.secret.token),
      place_{settings.address, settings.port},
      secret_file_(settings.secret_file),
      stub_(proto::Control::NewStub(
          make_channel({.target = host_and_port(numeric_address(settings.address), settings.port),
                        .certificate = settings.secret.certificate,
                        .most_bytes = static_cast<int>(kMostAnswerBytes)}))) {}

std::unique_ptr<ViewCall> ViewClient::ask(const ViewQuestion& question) {
  auto call =
      std::make_unique<GrpcViewCall>(AskedPlace{place_, secret_file_}, token_, was_answered_);
  call->start(*stub_, question);
  return call;
}

}  // namespace strata::launcher
