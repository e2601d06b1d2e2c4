// The board: memory through which ranks that share memory meet. It says who waits for what, where
// operands lie, and whether a rank gave up. It is plain data in one block that every rank maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "comm/arena_table.h"
#include "comm/peer_memory/wake_word.h"

namespace strata::comm {

/// The announcement of a collective by one rank, written before a barrier and read after it.
struct Publication {
  std::uint64_t fingerprint;
  ArenaPlace operand;
  char text[128];  ///< describe(collective), truncated
};

enum class RankState : std::uint32_t { absent, present, closed, gone };

struct alignas(64) RankSlot {
  std::atomic<RankState> state;
  std::int32_t process;
  /// Used in turn: after the barrier, a slow peer may still read one while the next is written.
  Publication publications[2];
  /// 1 while this rank reads peers' operands. A failing rank may free its memory once this is 0 on
  /// all ranks: a rank that begins to read later sees first that the board is aborted.
  std::atomic<std::uint32_t> reading;
  std::byte* arena_base;  ///< address, in that rank, of the arena being registered
  std::int64_t arena_bytes;
};

/// Messages from one rank to another.
struct alignas(64) Mailbox {
  WakeWord posted;
  WakeWord taken;
  Publication publication;
};

/// A view of the board's block. Every rank may call all members at any time.
class Board {
 public:
  static std::size_t bytes(int world);
  /// `memory` has bytes(world), is zero-filled before the first rank looks, aligned to 64 bytes,
  /// and outlives this view.
  Board(std::byte* memory, int world) : memory_(memory), world_(world) {}

  [[nodiscard]] int world() const { return world_; }
  [[nodiscard]] RankSlot& slot(int rank) const;
  [[nodiscard]] Mailbox& mailbox(int from, int to) const;

  /// Joins the barrier under way. Returns true if this call completed it (and woke the others);
  /// otherwise the caller waits until `barrier_word().count()` has changed since before the call.
  [[nodiscard]] bool arrive() const;
  [[nodiscard]] WakeWord& barrier_word() const { return header().generation; }

  /// Wakes all ranks; the first reason is kept.
  void abort(std::string_view reason) const noexcept;
  [[nodiscard]] bool aborted() const { return header().generation.poisoned(); }
  [[nodiscard]] std::string abort_reason() const;

  /// Marks that `rank` reads its peers' operands until `end_reading`. False: aborted, do not read.
  [[nodiscard]] bool begin_reading(int rank) const;
  void end_reading(int rank) const;
  /// Call after `abort`: sleeps until no rank reads any more, which needs no further action.
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

/// Copies text into a fixed field, truncated and NUL-terminated.
void copy_text(char* field, std::size_t field_bytes, std::string_view text);

}  // namespace strata::comm
