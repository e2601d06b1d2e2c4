// Shows collectives that are no instructions of a Program while a rank takes part in them.
#pragma once

#include <exception>

#include "comm/communicator.h"

namespace strata::comm {

/// Tells the communicator's watch, from construction to destruction, the number of the next
/// collective and a name for people. Inside another one the outer name stays, since it says more. A
/// collective that throws stays shown: there the rank failed. One thread, that which communicates.
class ShownCollective {
 public:
  /// `name` outlives this object.
  ShownCollective(Communicator& communicator, const char* name)
      : communicator_(communicator), outer_(communicator.shown_) {
    if (communicator.watch() == nullptr) return;
    communicator.shown_ = outer_ != nullptr ? outer_ : name;
    communicator.watch()->begin_collective(communicator.begun() + 1, communicator.shown_);
  }
  ~ShownCollective() {
    communicator_.shown_ = outer_;
    if (communicator_.watch() == nullptr || std::uncaught_exceptions() > failures_) return;
    if (outer_ == nullptr) communicator_.watch()->end_collective();
  }
  ShownCollective(const ShownCollective&) = delete;
  ShownCollective& operator=(const ShownCollective&) = delete;

 private:
  Communicator& communicator_;
  const char* const outer_;
  const int failures_ = std::uncaught_exceptions();
};

}  // namespace strata::comm
