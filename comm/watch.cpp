#include "comm/watch.h"

#include "comm/first_cause.h"
#include "core/error.h"

namespace strata::comm {

void require_not_stopped(const Watch* watch) {
  if (watch == nullptr) return;
  if (const auto reason = watch->stop_reason()) throw PeerError(told_by_launcher(*reason));
}

}  // namespace strata::comm
