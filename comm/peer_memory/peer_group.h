// The ranks of one host, or some rank threads of one process, that read one another's memory: how
// they meet, find operands, wait and fail. What they compute lies in communicators.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/arena_table.h"
#include "comm/communicator.h"
#include "comm/peer_memory/board.h"
#include "comm/peer_memory/peer_link.h"

namespace strata::comm {

/// Ranks have numbers of the group, from 0; messages name `first_rank` plus that number. Every wait
/// sleeps on a futex, ends with PeerError on abort, and checks every 200 ms whether the rank must
/// end or a peer died. One thread, but for `abort` and `check`.
class PeerGroup {
 public:
  /// Does not wait: the ranks meet in their first exchange. `owner` is the communicator whose
  /// collectives these are, and outlives the group.
  PeerGroup(std::unique_ptr<PeerLink> link, int rank, int ranks, const Communicator& owner,
            int first_rank = 0);
  ~PeerGroup();
  PeerGroup(const PeerGroup&) = delete;
  PeerGroup& operator=(const PeerGroup&) = delete;

  [[nodiscard]] std::string_view backend() const { return link_->backend(); }
  /// Describes the collective under way, for messages.
  [[nodiscard]] const std::string& what() const { return what_; }

  void register_arena(const ArenaRegion& region);
  void unregister_arena(const std::byte* base);
  [[nodiscard]] const ArenaTable& arenas() const { return arenas_; }

  /// Runs `step`; an exception from it kills the group on all ranks and is rethrown when no peer
  /// reads this rank's memory any more.
  void begin(std::string_view what, const std::function<void()>& step);
  /// Kills the group: all ranks throw the first reason. `reason` names the rank at fault.
  void abort(std::string_view reason) noexcept { board_.abort(reason); }
  [[nodiscard]] bool aborted() const { return board_.aborted(); }
  /// Throws PeerError if the group is dead.
  void require_alive() const;
  /// Throws PeerError, and kills the group, if the watch or a dead peer says that it must end.
  void check();
  /// Leaves the group: peers do not miss this rank any more.
  void close();
  [[nodiscard]] bool closed() const { return closed_; }

  /// Publishes the operand, meets the others, checks that all run the same collective and allows
  /// reading. Returns all operands by rank, valid until the next exchange.
  std::span<const std::byte*> exchange(const Collective& collective, const std::byte* operand,
                                       std::int64_t bytes);
  /// Ends reading, and meets the others.
  void barrier();
  /// Allows reading the peers' operands until the next barrier; throws PeerError if aborted.
  void begin_reading();

  /// Sends to, or receives from, `peer` of the group; the two meet.
  void send(const Collective& collective, int peer, const std::byte* input, std::int64_t bytes);
  void receive(const Collective& collective, int peer, std::byte* output, std::int64_t bytes);

 private:
  /// All ranks' mappings of one arena, by rank; empty when it is unregistered.
  using Mappings = std::vector<std::span<const std::byte>>;

  void leave_failed(std::string_view reason) noexcept;
  void wait(WakeWord& word, std::uint32_t seen, int from_peer, int to_peer);
  [[nodiscard]] std::string fate_of(int peer) const;
  [[noreturn]] void miss(int peer, std::string_view fate) const;
  void unmap_peers(Mappings& mappings) noexcept;
  [[nodiscard]] const std::byte* peer_operand(const Publication& publication, int peer) const;
  [[nodiscard]] Publication publication_of(const Collective& collective, const void* operand,
                                           std::int64_t bytes, const char* role) const;

  std::unique_ptr<PeerLink> link_;
  Board board_;
  const Communicator& owner_;
  int rank_;
  int ranks_;
  int first_rank_;
  ArenaTable arenas_;
  std::vector<Mappings> mappings_;  ///< index: the arena's number
  std::uint64_t exchanges_ = 0;
  std::vector<const std::byte*> operands_;  ///< operands of the last exchange, by rank
  std::string what_;
  bool closed_ = false;
};

}  // namespace strata::comm
