// The last instructions and collectives of a rank, with their times, in memory that others read
// while the rank lives and after its death. It is part of the status page.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// An instruction or a collective that has begun.
struct RankEvent {
  enum class Kind : std::uint8_t { instruction, collective };
  std::uint64_t order = 0;  ///< among all events of the rank, from 1
  Kind kind = Kind::instruction;
  std::int64_t number = 0;    ///< index in its Program, or number of the collective
  std::string name;           ///< without control characters; cut if it is long
  std::int64_t begun_ns = 0;  ///< coarse_monotonic_ns of the host
  std::int64_t ended_ns = 0;  ///< 0: it is under way
};

/// The shared layout: a row of slots for each kind, so that a long collective outlives many
/// instructions. Each row has one writer at a time; anybody may read. A slot that is written while
/// it is read is left out, or is torn, which is harmless since it is only shown. All zero: empty.
class EventRing {
 public:
  static constexpr std::size_t kSlots = 32;  ///< of each kind

  /// Begins an event, which ends the one of this kind that was under way. Copies `name`. Takes
  /// some 20 ns.
  void begin(RankEvent::Kind kind, std::int64_t number, std::string_view name);
  /// Ends the event of this kind that began last, unless it has ended.
  void end(RankEvent::Kind kind);
  /// Returns the last events in the order of their beginnings: `count`, or more if more are under
  /// way.
  [[nodiscard]] std::vector<RankEvent> last(std::size_t count) const;

 private:
  struct Slot {
    std::atomic<std::uint64_t> order;  ///< 0: empty, or being written
    std::atomic<std::int64_t> number, begun_ns, ended_ns;
    std::array<char, 64> name;  ///< ends with NUL
  };
  struct Row {
    std::atomic<std::uint64_t> count;  ///< of events that began
    std::array<Slot, kSlots> slots;
  };
  [[nodiscard]] Row& row(RankEvent::Kind kind) { return rows_[static_cast<std::size_t>(kind)]; }

  std::atomic<std::uint64_t> count_;  ///< of both kinds
  std::array<Row, 2> rows_;
};

/// Returns a line for each event, without a newline at the end: "12.31 s ago  collective 18
/// 'gather layer4', not ended". `now_ns` is by the clock of the events.
std::string describe_events(const std::vector<RankEvent>& events, std::int64_t now_ns);

}  // namespace strata
