#include "train/run/planning_beat.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace strata::train {
namespace {

struct Counted {
  std::mutex mutex;
  std::int64_t graphs = 0;
};

}  // namespace

PlanningBeat::PlanningBeat(Hear hear, Beat further)
    : hear_(std::move(hear)),
      beat_([hear = hear_, further = std::move(further), counted = std::make_shared<Counted>(),
             begin = std::chrono::steady_clock::now()] {
        {
          const std::scoped_lock lock(counted->mutex);
          const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin;
          hear(PlanningProgress{++counted->graphs, since.count()});
        }
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
