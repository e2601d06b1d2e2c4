#include "runtime/execute/run_failure.h"

#include <fmt/core.h>

#include "core/error.h"

namespace strata::runtime {

void RunFailure::tell(const std::string& what, const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  const ExitCode code = known != nullptr ? known->exit_code() : ExitCode::internal;
  const std::string message = what + " failed: " + error.what();
  {
    std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = std::make_exception_ptr(Error(code, message));
    // Poisons under the lock: a thread that fails second returns to a queue that must see it.
    poison();
  }
  const std::string who = peers_.has(comm::MeshAxis::data)
                              ? fmt::format("rank {}: ", peers_.of(comm::MeshAxis::data).rank())
                              : "";
  peers_.abort(who + message, code);
}

void RunFailure::rethrow() const {
  std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace strata::runtime
