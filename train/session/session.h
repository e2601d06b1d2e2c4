// A training run that a program holds: opened, stepped, closed. What happens in it comes out as
// events (train/run/run_event.h), and this is all there is: screen, files and pages are made
// by listeners.
#pragma once

#include <memory>

#include "core/error.h"
#include "train/run/run_listeners.h"
#include "train/run/training_run.h"

namespace strata::train {

/// One rank's. Calls are made by one thread, and by all ranks in the same order: opening, step(),
/// run() and close() are collective. What fails is told as Refused and thrown as Error (or what
/// else it was); by then the session is released, and can only be destroyed.
class Session {
 public:
  /// Builds Programs, loads or initializes weights, finds where to go on. Where
  /// checkpoint.on_signal is set, signals that ask for a last checkpoint are heard from here on
  /// until the run has ended (train/run/stop_request.h): this thread and those it starts block
  /// them. Borrows the listeners; the session adds those of what options ask for beside the screen
  /// (train/session/option_listeners.h).
  static Session open(RunRequest request, const RunListeners& listeners);
  /// Releases what is left without close(): what was not saved is lost, and other ranks of a run
  /// that has not ended see that this one is gone.
  ~Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;

  /// Starts the next step; listeners hear of the one before it, and of evaluations and checkpoints
  /// that are due. After the last one it drains, saves and evaluates. False: the run has ended, now
  /// or before.
  bool step();
  /// Steps until the run has ended. SIGTERM or SIGUSR1 to any rank: all finish the same step, save,
  /// and the code is try_again; otherwise done.
  ExitCode run();
  /// Ends the run as such a signal does, if it has not ended, and says how it ended.
  ExitCode close();

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  template <typename Body>
  auto guard(const Body& body);
  void require_open() const;

  std::unique_ptr<Parts> parts_;  ///< none after an error
};

/// Makes one of what was thrown: an Error's text and code; of others a code that fits.
Refused refusal_of(const std::exception& error);

}  // namespace strata::train
