#include "train/session/metrics_listener.h"

#include <utility>

namespace strata::train {

void MetricsListener::open(const Began& began) {
  if (began.first_step == 0)
    if (const std::string old = put_earlier_metrics_aside(path_); !old.empty())
      listeners_.note(path_ + " held the metrics of an earlier run, which are in " + old + " now");
  log_.emplace(path_, began.first_step, [this](const IoError& error) { failure_ = error; });
}

void MetricsListener::write(const StepDone& done) {
  if (const std::string news = missing_.take(done.step, log_->write(done)); !news.empty())
    listeners_.warn(path_ + ": " + news);
}

void MetricsListener::tell_missing() {
  if (const std::string text = std::exchange(missing_, {}).text(); !text.empty())
    listeners_.warn(path_ + ": " + text);
}

void MetricsListener::operator()(const RunEvent& event) {
  if (comes_from_any_thread(event)) return;
  if (const auto* began = std::get_if<Began>(&event)) return open(*began);
  if (!log_) return;
  if (const auto* done = std::get_if<StepDone>(&event)) write(*done);
  if (const auto* evaluated = std::get_if<Evaluated>(&event)) log_->write(*evaluated);
  if (const auto* saved = std::get_if<Saved>(&event)) log_->write(*saved);
  if (const auto* transfers = std::get_if<Transfers>(&event)) log_->write(*transfers);
  if (std::holds_alternative<Closing>(event)) tell_missing();
  if (failure_) throw IoError(*std::exchange(failure_, {}));
}

}  // namespace strata::train
