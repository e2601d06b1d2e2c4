#include "launcher/views/asked_run.h"

#include <utility>

#include "core/error.h"

namespace strata::launcher {
namespace {

class EndOfRemoteRun final : public RunEnd {
 public:
  EndOfRemoteRun(std::string run_id, std::unique_ptr<ViewCall> call)
      : RunEnd(std::move(run_id)), call_(std::move(call)) {}

  bool wait(std::chrono::milliseconds limit) override {
    if (!call_) return true;
    if (!call_->wait(limit)) return false;
    if (const auto answer = std::exchange(call_, nullptr)->answer()) tell(*answer);
    return true;
  }

 private:
  std::unique_ptr<ViewCall> call_;  ///< null: the run has ended
};

std::unique_ptr<ViewWire> connect(ControlModule& module, const ViewOptions::At& at) {
  RunSecret secret = read_run_secret(at.secret);
  secret.key.clear();
  return module.view({.address = at.address,
                      .port = at.port,
                      .secret = std::move(secret),
                      .secret_file = at.secret});
}

}  // namespace

RemoteRun::RemoteRun(const ViewOptions& options)
    : module_(open_control_module()), wire_(connect(*module_, options.at)) {
  const auto status = ask(AskStatus{});
  if (!status) throw HostError("the run has just ended");
  id_ = status->at("run").as_string();
  if (!id_.starts_with(options.run))
    throw InvalidArgument("the run that listens there is " + id_ + ", not " + options.run);
}

std::optional<JsonValue> RemoteRun::ask(const ViewQuestion& question,
                                        std::optional<std::chrono::milliseconds> limit) {
  const std::unique_ptr<ViewCall> call = wire_->ask(question);
  while (!call->wait(limit.value_or(RunsOfUser::kPatience)))
    if (limit) throw HostError("the run does not answer; its mlaunch may be suspended or busy");
  const auto answer = call->answer();
  if (!answer) return std::nullopt;
  return parse_json(*answer, "the run's answer", {});
}

std::unique_ptr<RunEnd> RemoteRun::end() {
  return std::make_unique<EndOfRemoteRun>(id_, wire_->ask(AskEnd{}));
}

}  // namespace strata::launcher
