// The memory through which ranks that share memory meet: who waits for what, where operands lie,
// and whether somebody gave up. It is plain data in one block that every rank maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/arena_table.h"
#include "comm/peer_memory/wake_word.h"

namespace strata::comm {

/// What a rank tells the others before a collective. Written before a barrier, read after it.
struct Publication {
  std::uint64_t fingerprint;
  ArenaPlace operand;
  char text[128];  ///< describe(collective), cut
};

enum class RankState : std::uint32_t { absent, present, closed, gone };

struct alignas(64) RankSlot {
  std::atomic<RankState> state;
  std::int32_t process;
  /// Used in turn: a slow peer may still read one after the barrier while the next is written.
  Publication publications[2];
  /// 1 while this rank reads what others published. A failing rank's memory may go once it is 0
  /// everywhere: whoever begins to read afterwards sees that the board is aborted first.
  std::atomic<std::uint32_t> reading;
  std::byte* arena_base;  ///< of the arena being registered; an address in that rank
  std::int64_t arena_bytes;
};

/// Send and receive of one ordered pair of ranks.
struct alignas(64) Mailbox {
  WakeWord posted;
  WakeWord taken;
  Publication publication;
};

/// A view of the block. All members may be called by every rank at any time.
class Board {
 public:
  static std::size_t bytes(int world);
  /// `memory`: bytes(world), zero-filled before the first rank looks, 64-byte aligned, and outlives
  /// this view.
  Board(std::byte* memory, int world) : memory_(memory), world_(world) {}

  [[nodiscard]] int world() const { return world_; }
  [[nodiscard]] RankSlot& slot(int rank) const;
  [[nodiscard]] Mailbox& mailbox(int from, int to) const;

  /// Joins the barrier under way: true when this call completed it (and woke the others); otherwise
  /// the caller waits until `barrier_word().count()` differs from `seen`, its value before.
  [[nodiscard]] bool arrive() const;
  [[nodiscard]] WakeWord& barrier_word() const { return header().generation; }

  /// Wakes everyone; the first reason stays.
  void abort(std::string_view reason) const noexcept;
  [[nodiscard]] bool aborted() const { return header().generation.poisoned(); }
  [[nodiscard]] std::string abort_reason() const;

  /// `rank` reads its peers' operands from here to `end_reading`. False: aborted, it must not.
  [[nodiscard]] bool begin_reading(int rank) const;
  void end_reading(int rank) const;
  /// Call after `abort`: sleeps until no rank reads any more. Their reading ends by itself.
  void wait_for_readers() const;

 private:
  struct alignas(64) Header {
    WakeWord generation;
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> reason_state;  ///< 0 none, 1 being written, 2 written
    char reason[4096];
  };
  [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(memory_); }

  std::byte* memory_;
  int world_;
};

/// Copies text into a fixed field, cut and NUL-terminated.
void copy_text(char* field, std::size_t field_bytes, std::string_view text);

}  // namespace strata::comm
