#include "train/run/planning_beat.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace strata::train {
PlanningBeat::PlanningBeat(Hear hear, Beat further)
    : hear_(std::move(hear)),
      beat_([hear = hear_, further = std::move(further),
             graphs = std::make_shared<std::atomic<std::int64_t>>(0),
             begin = std::chrono::steady_clock::now(), thread = std::this_thread::get_id()] {
        const std::int64_t built = ++*graphs;
        const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin;
        if (std::this_thread::get_id() == thread) hear(PlanningProgress{built, since.count()});
        further();
      }) {}

PlanningBeat::~PlanningBeat() {
  try {
    hear_({});
  } catch (...) {
    // A screen that cannot be written to is no reason to lose what was planned.
  }
}

}  // namespace strata::train
