#include "launcher/wire/grpc/agent_client.h"

#include <fmt/core.h>

#include <utility>

#include "core/check.h"
#include "launcher/wire/grpc/channel.h"
#include "launcher/wire/grpc/coordinator_stream.h"
#include "launcher/wire/grpc/stream_metadata.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{200};
constexpr std::chrono::milliseconds kToBeRefused{1000};

std::unique_ptr<proto::Control::Stub> stub_of(const AttachSettings& settings,
                                              const std::string& certificate) {
  return proto::Control::NewStub(
      make_channel({.target = host_and_port(settings.address, settings.port),
                    .certificate = certificate,
                    .most_bytes = kMostMessageBytes}));
}

}  // namespace

AgentClient::AgentClient(const AttachSettings& settings)
    : settings_(settings),
      run_id_(settings.run_id),
      stub_(stub_of(settings, settings.secret.certificate)) {
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
  {
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
    ending_changed_.notify_all();
    if (!stream.run_id().empty()) run_id_ = stream.run_id();
    if (ending_) return false;
  }
  if (stream.refusal()) return stream.refusal()->may_wait;
  const auto other = secret_that_differs(status, {settings_.address, settings_.port});
  if (!other) {
    events_.put(CoordinatorOutOfReach{reason_of(status)});
    return true;
  }
  // One with another token was heard of as it was refused.
  if (!other->certificate.empty() && !std::exchange(has_come_, true))
    come_without_secret(other->certificate);
  const std::string place = host_and_port(settings_.address, settings_.port);
  // An mlaunch that started this agent made the secret for its own run, and has no file of it.
  events_.put(NotWelcome{
      .reason =
          settings_.secret_file == "-"
              ? fmt::format("another run listens at {}: {} is not its own (the {} differs)", place,
                            secret_for_people("-"), other->part)
              : fmt::format("{} is not that of the run at {} (the {} differs); compare it "
                            "with the --run-secret file of host 0, and give all hosts the same",
                            secret_for_people(settings_.secret_file), place, other->part),
      .may_wait = true});
  return true;
}

void AgentClient::come_without_secret(const std::string& certificate) {
  const auto stub = stub_of(settings_, certificate);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kToBeRefused);
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    call_ = &context;
  }
  (void)stub->Attach(&context)->Finish();
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
}

void AgentClient::send(const SendToCoordinator& message) {
  const std::lock_guard lock(mutex_);
  if (stream_ != nullptr)
    stream_->send(
        to_proto(message.message,
                 {.protocol = kControlProtocol, .facts = settings_.facts, .run_id = run_id_}));
}

void AgentClient::send(const SendToAgent&) {
  STRATA_CHECK(false);  // this is an agent's end
}

void AgentClient::send(const RecentOutput::Piece& output) {
  const std::lock_guard lock(mutex_);
  if (stream_ != nullptr) stream_->send(to_proto(output));
}

void AgentClient::fetch_output(const std::string&, const std::string&, std::uint64_t) {
  STRATA_CHECK(false);  // this is an agent's end
}

void AgentClient::answer(std::uint64_t, const std::string&) {
  STRATA_CHECK(false);  // nobody asks an agent
}

std::string AgentClient::settle_run() {
  STRATA_CHECK(false);  // this is an agent's end
  return "";
}

void AgentClient::end_run(int) {
  STRATA_CHECK(false);  // this is an agent's end
}

void AgentClient::close(std::chrono::milliseconds limit) {
  if (!connector_.joinable()) return;
  const auto until = std::chrono::steady_clock::now() + limit;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (stream_ != nullptr) stream_->end();
    if (call_ != nullptr) call_->TryCancel();
  }
  ending_changed_.notify_all();
  std::unique_lock lock(mutex_);
  ending_changed_.wait_until(lock, until, [this] { return stream_ == nullptr; });
  if (stream_ != nullptr) stream_->cancel();
  lock.unlock();
  connector_.join();
}

}  // namespace strata::launcher
