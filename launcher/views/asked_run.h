// A run as a command reaches it: over its Unix socket on this host, or from anywhere over TLS.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/json.h"
#include "launcher/control/view_question.h"
#include "launcher/views/run_end.h"
#include "launcher/views/runs_of_user.h"
#include "launcher/views/view_options.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {

class AskedRun {
 public:
  AskedRun() = default;
  AskedRun(const AskedRun&) = delete;
  AskedRun& operator=(const AskedRun&) = delete;
  virtual ~AskedRun() = default;

  [[nodiscard]] virtual const std::string& id() const = 0;
  /// Returns the run's answer; nullopt: it has ended. Throws HostError if it does not answer in
  /// time; without a limit it waits as long as the run does.
  virtual std::optional<JsonValue> ask(const ViewQuestion& question,
                                       std::optional<std::chrono::milliseconds> limit) = 0;
  std::optional<JsonValue> ask(const ViewQuestion& question) {
    return ask(question, RunsOfUser::kPatience);
  }
  /// Waits for its end from now on. Do not let it outlive the run.
  virtual std::unique_ptr<RunEnd> end() = 0;
};

class LocalRun final : public AskedRun {
 public:
  /// Borrows runs.
  LocalRun(const RunsOfUser& runs, std::string id) : runs_(runs), id_(std::move(id)) {}

  [[nodiscard]] const std::string& id() const override { return id_; }
  using AskedRun::ask;
  std::optional<JsonValue> ask(const ViewQuestion& question,
                               std::optional<std::chrono::milliseconds> limit) override {
    return runs_.ask(id_, format_view_question(question), limit);
  }
  std::unique_ptr<RunEnd> end() override { return std::make_unique<EndOfLocalRun>(runs_, id_); }

 private:
  const RunsOfUser& runs_;
  const std::string id_;
};

class RemoteRun final : public AskedRun {
 public:
  /// Asks who is there. Throws InvalidArgument if that is not the run that `options` name,
  /// ConfigError if it has another secret, HostError if nobody answers, or if what answers is no
  /// mlaunch.
  explicit RemoteRun(const ViewOptions& options);

  [[nodiscard]] const std::string& id() const override { return id_; }
  using AskedRun::ask;
  std::optional<JsonValue> ask(const ViewQuestion& question,
                               std::optional<std::chrono::milliseconds> limit) override;
  std::unique_ptr<RunEnd> end() override;

 private:
  const std::unique_ptr<ControlModule> module_;
  const std::unique_ptr<ViewWire> wire_;
  std::string id_;
};

}  // namespace strata::launcher
