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
