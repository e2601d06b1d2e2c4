#include "comm/peer_memory/board.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/check.h"

namespace strata::comm {

std::size_t Board::bytes(int world) {
  const auto ranks = static_cast<std::size_t>(world);
  return sizeof(Header) + ranks * sizeof(RankSlot) + ranks * ranks * sizeof(Mailbox);
}

RankSlot& Board::slot(int rank) const {
  STRATA_CHECK(rank >= 0 && rank < world_, rank, world_);
  return reinterpret_cast<RankSlot*>(memory_ + sizeof(Header))[rank];
}

Mailbox& Board::mailbox(int from, int to) const {
  STRATA_CHECK(from >= 0 && from < world_ && to >= 0 && to < world_, from, to, world_);
  std::byte* first = memory_ + sizeof(Header) + static_cast<std::size_t>(world_) * sizeof(RankSlot);
  return reinterpret_cast<Mailbox*>(first)[from * world_ + to];
}

bool Board::arrive() const {
  Header& shared = header();
  const std::uint32_t before = shared.arrived.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 != static_cast<std::uint32_t>(world_)) return false;
  shared.arrived.store(0, std::memory_order_relaxed);
  shared.generation.advance();
  return true;
}

void Board::abort(std::string_view reason) const noexcept {
  Header& shared = header();
  std::uint32_t none = 0;
  if (shared.reason_state.compare_exchange_strong(none, 1)) {
    copy_text(shared.reason, sizeof shared.reason, reason);
    shared.reason_state.store(2, std::memory_order_release);
  }
  shared.generation.poison();
  for (int from = 0; from < world_; ++from) {
    for (int to = 0; to < world_; ++to) {
      mailbox(from, to).posted.poison();
      mailbox(from, to).taken.poison();
    }
  }
}

std::string Board::abort_reason() const {
  // The aborting rank may still be writing the reason, or have died while it wrote.
  if (header().reason_state.load(std::memory_order_acquire) != 2) return "a rank gave up";
  return header().reason;
}

bool Board::begin_reading(int rank) const {
  std::atomic<std::uint32_t>& reading = slot(rank).reading;
  // Sequentially consistent, like poison(): either the aborting rank sees this store, or this rank
  // sees the poison.
  reading.store(1, std::memory_order_seq_cst);
  if (!aborted()) return true;
  reading.store(0, std::memory_order_release);
  return false;
}

void Board::end_reading(int rank) const { slot(rank).reading.store(0, std::memory_order_release); }

void Board::wait_for_readers() const {
  for (int rank = 0; rank < world_; ++rank)
    while (slot(rank).reading.load(std::memory_order_seq_cst) != 0)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void copy_text(char* field, std::size_t field_bytes, std::string_view text) {
  const std::size_t length = std::min(text.size(), field_bytes - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

}  // namespace strata::comm
