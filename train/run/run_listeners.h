// The listeners that hear what happens in a run.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "train/run/run_event.h"

namespace strata::train {

/// Called on the thread that runs the session, during the run: must return soon and call nothing of
/// the session. Two events come from another thread, perhaps while a listener hears something else:
/// a Note that is a failure (Ctrl-C, or a signal that shall not save), and Refused after a grace is
/// over; the process ends after them. An Error that a listener throws from Equipping or Began ends
/// the run. From StepDone, Evaluated, Saved, Transfers and Closing it is printed as a warning,
/// costs no step, and is the session's error once all is saved.
using RunListener = std::function<void(const RunEvent&)>;

/// True for an event that may come from another thread than the run's: a listener with state of its
/// own takes none of these, or has a lock.
inline bool comes_from_any_thread(const RunEvent& event) {
  return std::holds_alternative<Note>(event) || std::holds_alternative<Refused>(event);
}

/// All listeners of one rank's session, which hear every event in the order they were added.
class RunListeners {
 public:
  RunListeners() = default;
  RunListeners(const RunListeners&) = delete;
  RunListeners& operator=(const RunListeners&) = delete;

  /// Adds a listener, before a session begins.
  void add(RunListener listener) { listeners_.push_back(std::move(listener)); }

  /// Calls hear(listener) for each listener.
  template <typename Hear>
  void for_each(const Hear& hear) const {
    for (const RunListener& listener : listeners_) hear(listener);
  }
  /// Tells all listeners, then throws what the first failing one threw.
  void tell(const RunEvent& event) const {
    std::exception_ptr failure;
    for_each([&](const RunListener& listener) {
      try {
        listener(event);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
  }
  void print(std::string text) const { tell(Note{Note::Level::text, std::move(text)}); }
  void note(std::string text) const { tell(Note{Note::Level::note, std::move(text)}); }
  void warn(std::string text) const { tell(Note{Note::Level::warning, std::move(text)}); }
  void fail(std::string text) const { tell(Note{Note::Level::failure, std::move(text)}); }

 private:
  std::vector<RunListener> listeners_;
};

}  // namespace strata::train
