// The link of ranks that are threads of one process: peers' memory needs no mapping.
#pragma once

#include <memory>

#include "comm/peer_memory/peer_link.h"

namespace strata::comm {

/// Makes a zero-filled board for `world` rank threads; their links share it.
std::shared_ptr<std::byte> make_thread_board(int world);

class ThreadLink final : public PeerLink {
 public:
  explicit ThreadLink(std::shared_ptr<std::byte> board) : board_(std::move(board)) {}
  [[nodiscard]] std::string_view backend() const override { return "threads"; }
  [[nodiscard]] std::byte* board_memory() const override { return board_.get(); }
  void offer(int /*arena*/, const ArenaRegion& /*region*/) override {}
  void withdraw(int /*arena*/) override {}
  std::span<const std::byte> map(int /*peer*/, int /*arena*/, std::byte* base_in_peer,
                                 std::int64_t bytes) override {
    return {base_in_peer, static_cast<std::size_t>(bytes)};
  }
  void unmap(int /*peer*/, std::span<const std::byte> /*mapping*/) noexcept override {}
  [[nodiscard]] bool maps_in_place() const override { return true; }
  /// "" always: a thread that ends destroys its communicator, and the board tells that.
  [[nodiscard]] std::string death_of(int /*peer*/) const override { return {}; }

 private:
  std::shared_ptr<std::byte> board_;
};

}  // namespace strata::comm
