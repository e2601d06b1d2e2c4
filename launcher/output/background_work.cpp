#include "launcher/output/background_work.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace strata::launcher {

struct BackgroundWork::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> due;  ///< the first one is being done
  bool ends = false;
  std::optional<std::string> complaint;
};

BackgroundWork::BackgroundWork(std::chrono::milliseconds patience)
    : patience_(patience), state_(std::make_shared<State>()) {}

BackgroundWork::~BackgroundWork() {
  const bool is_done = wait(patience_);
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  if (!thread_.joinable()) return;
  if (is_done)
    thread_.join();
  else
    thread_.detach();
}

void BackgroundWork::add(std::function<void()> work) {
  try {
    if (!thread_.joinable())
      thread_ = std::thread([state = state_] { BackgroundWork::work(*state); });
  } catch (const std::system_error& error) {
    throw HostError(std::string("cannot start a thread: ") + error.what());
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->due.push_back(std::move(work));
  }
  state_->changed.notify_all();
}

bool BackgroundWork::wait(std::chrono::milliseconds limit) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, limit, [&] { return state_->due.empty(); });
}

std::optional<std::string> BackgroundWork::take_complaint() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->complaint, std::nullopt);
}

void BackgroundWork::work(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.changed.wait(lock, [&] { return state.ends || !state.due.empty(); });
    if (state.ends) return;  // what hung until then is not followed by more
    const std::function<void()> work = std::move(state.due.front());
    lock.unlock();
    std::optional<std::string> complaint;
    try {
      work();
    } catch (const std::exception& error) {
      complaint = error.what();
    }
    lock.lock();
    if (!state.complaint) state.complaint = std::move(complaint);
    state.due.pop_front();
    state.changed.notify_all();
  }
}

}  // namespace strata::launcher
