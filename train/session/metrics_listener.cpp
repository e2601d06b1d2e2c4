#include "train/session/metrics_listener.h"

#include <utility>

namespace strata::train {

void MetricsListener::open(const Began& began) {
  if (began.first_step == 0)
    if (const std::string old = put_earlier_metrics_aside(path_); !old.empty())
      listeners_.note(path_ + " held the metrics of an earlier run, which are in " + old + " now");
  log_.emplace(path_, began.first_step, [this](const IoError& error) { failure_ = error; });
}

void MetricsListener::operator()(const RunEvent& event) {
  if (const auto* began = std::get_if<Began>(&event)) return open(*began);
  if (!log_) return;
  const auto write = [&](const auto* of_a_kind) {
    if (of_a_kind != nullptr) log_->write(*of_a_kind);
    return of_a_kind != nullptr;
  };
  const bool wrote = write(std::get_if<StepDone>(&event)) ||
                     write(std::get_if<Evaluated>(&event)) || write(std::get_if<Saved>(&event)) ||
                     write(std::get_if<Transfers>(&event));
  if (wrote && failure_) throw IoError(*std::exchange(failure_, {}));
}

}  // namespace strata::train
