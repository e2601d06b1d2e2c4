// Work that may hang, such as writing to a network file system that does not answer, in a thread of
// its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace strata::launcher {

/// Does what it is given, one thing after another. Use it from one thread; that which works starts
/// with the first work.
class BackgroundWork {
 public:
  /// `patience`: for which the destructor waits. Work that hangs longer is left to the end of the
  /// process, so it must own or share all that it uses.
  explicit BackgroundWork(std::chrono::milliseconds patience);
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  /// Adds work. What it throws becomes the complaint. Throws HostError if no thread can start.
  void add(std::function<void()> work);
  /// Waits until all is done; false: it is not within `limit`.
  [[nodiscard]] bool wait(std::chrono::milliseconds limit);
  /// The first failure since the last call.
  [[nodiscard]] std::optional<std::string> take_complaint();

 private:
  struct State;
  static void work(State& state);

  const std::chrono::milliseconds patience_;
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace strata::launcher
