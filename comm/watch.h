// What a rank's communicators ask while they wait, and tell of collectives outside of Programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata::comm {

/// One per rank, which outlives the rank's communicators. In a run it is the rank's status page.
class Watch {
 public:
  virtual ~Watch() = default;
  /// Returns why this rank must end, in the launcher's words; nullopt: it may go on. Communicators
  /// ask, on any thread, several times a second while they wait.
  [[nodiscard]] virtual std::optional<std::string> stop_reason() const = 0;
  /// Called on the thread that communicates: collective `number` begins, or has ended.
  virtual void begin_collective(std::int64_t number, std::string_view name) = 0;
  virtual void end_collective() = 0;
};

/// Throws PeerError, whose first cause is the launcher's reason, if the rank must end. `watch` may
/// be null: nobody watches.
void require_not_stopped(const Watch* watch);

}  // namespace strata::comm
