#include "train/session/session.h"

#include <new>
#include <optional>
#include <utility>

#include "comm/first_cause.h"
#include "train/run/run_end.h"
#include "train/run/run_parts.h"
#include "train/run/step_loop.h"
#include "train/session/option_listeners.h"

namespace strata::train {

struct Session::Parts {
  Parts(RunRequest what, const RunListeners& who_hears)
      : request(std::move(what)), outside(who_hears) {
    listeners.add([this](const RunEvent& event) { outside.tell(event); });
    files.emplace(request, listeners);
  }

  RunRequest request;
  const RunListeners& outside;
  RunListeners listeners;                ///< the ones outside, then those of files
  std::optional<OptionListeners> files;  ///< listeners that options ask for
  std::optional<RunParts> run;
  std::optional<StepLoop> loop;  ///< exists from the first step to the last; borrows the run
  std::optional<ExitCode> ended;
};

/// Releases the run before telling of the failure, so that other ranks do not wait for listeners.
/// Those of files come first, since Refused is the last event that the others hear.
template <typename Body>
auto Session::guard(const Body& body) {
  require_open();
  try {
    return body(*parts_);
  } catch (const std::exception& error) {
    const Refused refused = refusal_of(error);
    const RunListeners& outside = parts_->outside;
    parts_->loop.reset();
    parts_->run.reset();
    parts_->files->tell(refused);
    parts_.reset();
    outside.tell(refused);
    throw;
  }
}

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Session::~Session() = default;
Session::Session(Session&& other) noexcept = default;
Session& Session::operator=(Session&& other) noexcept = default;

void Session::require_open() const {
  if (!parts_) throw InvalidArgument("the session has failed before; open another");
}

Session Session::open(RunRequest request, const RunListeners& listeners) {
  Session session(std::make_unique<Parts>(std::move(request), listeners));
  session.guard([](Parts& parts) {
    parts.run.emplace(parts.request, parts.listeners);
    parts.ended = open_training(*parts.run);
    if (parts.ended) parts.run.reset();
  });
  return session;
}

bool Session::step() {
  return guard([](Parts& parts) {
    if (parts.ended) return false;
    if (!parts.loop) parts.loop.emplace(*parts.run);
    if (parts.loop->step()) return true;
    parts.loop.reset();
    parts.ended = finish(*parts.run);
    parts.run.reset();
    return false;
  });
}

ExitCode Session::run() {
  while (step()) continue;
  return close();
}

ExitCode Session::close() {
  require_open();
  while (!parts_->ended) {
    guard([](Parts& parts) {
      if (!parts.loop) parts.loop.emplace(*parts.run);
      parts.loop->ask_to_stop();
    });
    step();
  }
  return *parts_->ended;
}

Refused refusal_of(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    // The place where this rank was does not matter if it failed because of another.
    const bool of_another = known->exit_code() == ExitCode::try_again;
    return {known->exit_code(), of_another ? comm::first_cause(known->what()) : known->what()};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {ExitCode::host, "out of host memory outside the planned arenas"};
  return {ExitCode::internal, error.what()};
}

}  // namespace strata::train
