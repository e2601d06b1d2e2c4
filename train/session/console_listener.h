// Prints a session's events for people, except its steps (progress.h).
#pragma once

#include "core/rank_context.h"
#include "core/status_page.h"
#include "train/run/run_event.h"
#include "train/session/console.h"
#include "train/session/encoding_line.h"
#include "train/session/planning_line.h"

namespace strata::train {

/// A RunListener: prints notes, checkpoints, last words, which also reach the status page. Borrows.
///
/// Text that standard output did not take costs no step: from StepDone and Closing its IoError is
/// thrown, once. So the run warns when it happens, saves all, and ends with the error's code, as
/// where metrics are lost: who reads the text later, and the script that waits for it, must learn
/// that it is not whole, and a run with --output that is started again because of it finds all its
/// steps done.
class ConsoleListener {
 public:
  ConsoleListener(Console& console, const RankContext& context, StatusPage& status)
      : console_(console),
        context_(context),
        status_(status),
        encoding_(console),
        planning_(console) {}
  void operator()(const RunEvent& event);

 private:
  void say(const Note& note);
  Console& console_;
  const RankContext& context_;
  StatusPage& status_;
  EncodingLine encoding_;
  PlanningLine planning_;
};

}  // namespace strata::train
