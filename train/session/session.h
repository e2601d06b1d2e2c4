// A training run that a program holds: opens, steps and closes. What happens in it comes out as
// events (train/run/run_event.h) only; listeners write to screen, files and status page.
#pragma once

#include <memory>

#include "core/error.h"
#include "train/run/run_listeners.h"
#include "train/run/training_run.h"

namespace strata::train {

/// One rank's session. One thread makes the calls, and all ranks make them in the same order:
/// opening, step(), run() and close() are collective. A failure is told as Refused and thrown as
/// Error (or whatever else it was); the session is then released and can only be destroyed.
class Session {
 public:
  /// Builds Programs, loads or initializes weights, finds where to go on. If checkpoint.on_signal
  /// is set, the session hears signals that ask for a last checkpoint from here until the run has
  /// ended (train/run/stop_request.h): this thread and those it starts block them. Borrows the
  /// listeners, and adds those that options ask for besides the screen
  /// (train/session/option_listeners.h).
  static Session open(RunRequest request, const RunListeners& listeners);
  /// Releases what is left if close() was not called: state that was not saved is lost, and other
  /// ranks of a run that has not ended see that this one is gone.
  ~Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;

  /// Starts the next step; listeners hear of the one before it, and of evaluations and checkpoints
  /// that are due. After the last step it drains, saves and evaluates. Returns false once the run
  /// has ended.
  bool step();
  /// Steps until the run has ended. After SIGTERM or SIGUSR1 to any rank all finish the same step
  /// and save, and the code is try_again; otherwise it is done.
  ExitCode run();
  /// Ends the run as such a signal does, if it has not ended, and says how it ended.
  ExitCode close();

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  template <typename Body>
  auto guard(const Body& body);
  void require_open() const;

  std::unique_ptr<Parts> parts_;  ///< null after an error
};

/// Makes a Refused of what was thrown: an Error's text and code; for others a code that fits.
Refused refusal_of(const std::exception& error);

}  // namespace strata::train
