// Collectives over ranks of several hosts in two levels: within a host ranks read one another's
// memory, and between hosts each byte that a host needs arrives there once.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "comm/host_communicator.h"
#include "comm/host_layout.h"
#include "comm/hosts/host_link.h"
#include "comm/hosts/tree_of_sums.h"
#include "comm/partial_sums.h"
#include "comm/peer_memory/peer_group.h"

namespace strata::comm {

/// Collectives of ranks on several hosts: this rank does for its host what its counterparts
/// (HostLayout::counterpart) elsewhere do for theirs. The first ranks of hosts, their leaders, tell
/// one another in every collective what they run. Bits are those of one host with as many ranks:
/// sums are Strata's own (partial_sums.h).
class HostsCommunicator final : public HostCommunicator {
 public:
  /// `peers` links the ranks of this host, numbered from 0. Does not wait.
  HostsCommunicator(std::unique_ptr<PeerLink> peers, std::unique_ptr<HostLink> hosts,
                    HostLayout layout, int rank);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return layout_.world; }
  [[nodiscard]] std::string_view backend() const override { return "hosts"; }
  void register_arena(const ArenaRegion& region) override;
  void unregister_arena(const std::byte* base) override;
  [[nodiscard]] Exchange exchange() const override { return Exchange::hosts; }
  [[nodiscard]] Seat seat() const override;
  void abort(const std::string& reason, ExitCode code) noexcept override;
  void check() override;
  void close() override;

  /// Bytes that this rank has sent to other hosts, headers of collectives included. Any thread.
  [[nodiscard]] std::int64_t sent_to_hosts() const { return sent_.load(); }

 private:
  /// Words of a rank to one of another host, before operands travel.
  struct Header {
    std::uint64_t fingerprint;
    char text[128];  ///< describe(collective), truncated
  };
  enum class Message : std::uint64_t { header, data, pair_header, pair_data };

  void execute(kernels::Stream& stream, const Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte> workspace) override;

  // Meeting and waiting (hosts_communicator.cpp).
  void begin(std::string_view what, const std::function<void()>& step);
  /// Exchanges as PeerGroup does, and begins to compare the collective with those of other hosts:
  /// `finish` is called before the collective ends.
  std::span<const std::byte*> meet_all(const Collective& collective, const std::byte* operand,
                                       std::int64_t bytes);
  /// A leader's: begins to tell the others, and compares what they tell.
  void begin_headers(const Collective& collective);
  void finish_headers();
  [[nodiscard]] Header header_of(const Collective& collective) const;
  [[noreturn]] void report_difference(int rank, const Header& one, int other_rank,
                                      const Header& other) const;
  /// Throws PeerError if a rank gave up, this one must end, or `peer` of another host has a fate.
  void require_living(int peer, std::string_view fate);
  /// Waits for the first `count` messages under way between hosts, after headers.
  void finish(std::size_t count = kAllMessages);
  /// Lets the ranks of this host read what arrived.
  void finish_host();

  // Messages; those of 0 bytes are left out on both sides.
  [[nodiscard]] std::uint64_t tag_of(Message message, std::uint64_t number,
                                     std::uint64_t detail) const;
  void send_data(int peer, const std::byte* data, std::int64_t bytes, std::int64_t part = 0);
  void receive_data(int peer, std::byte* data, std::int64_t bytes, std::int64_t part = 0);
  void send_bytes(Lane lane, int peer, std::uint64_t tag, const void* data, std::int64_t bytes);
  void receive_bytes(Lane lane, int peer, std::uint64_t tag, void* data, std::int64_t bytes);

  // The collectives (collectives.cpp).
  void all_gather(const Collective& collective, const std::byte* input, std::byte* output) override;
  void reduce_scatter(const Collective& collective, const std::byte* input, float* output,
                      std::span<std::byte> workspace) override;
  void all_reduce(const Collective& collective, std::byte* data,
                  std::span<std::byte> workspace) override;
  void broadcast(const Collective& collective, std::byte* data) override;
  void all_to_all(const Collective& collective, const std::byte* input, std::byte* output) override;
  void send(const Collective& collective, const std::byte* input) override;
  void receive(const Collective& collective, std::byte* output) override;
  void meet(const Collective& collective) override;
  /// Tells messages between two ranks apart: one of each sum begins at element `begin` of it.
  [[nodiscard]] std::int64_t part_number(const PartialSum& sum, std::int64_t begin) const;
  void receive_sums(const Collective& collective, std::span<std::byte>& free);
  void send_sums(const Collective& collective, std::span<const std::byte* const> operands,
                 std::span<std::byte>& free);
  void send_chunk(const Collective& collective, std::span<const std::byte* const> operands,
                  const PartialSum& sum, std::int64_t begin, std::byte* made);
  void add_own_sums(const Collective& collective, std::span<const std::byte* const> operands);
  [[nodiscard]] bool leads() const { return local_ == 0; }

  int rank_;
  HostLayout layout_;
  int host_;
  int local_;
  int locals_;
  PeerGroup group_;
  std::unique_ptr<HostLink> link_;  ///< ends before group_, which it tells of peers that give up
  std::atomic<std::int64_t> sent_{0};
  std::uint64_t rounds_ = 0;                  ///< collectives of all ranks so far
  std::uint64_t round_tag_ = 0;               ///< hash of the round and its collective
  std::vector<std::uint64_t> sent_to_;        ///< messages of `send` so far, by rank
  std::vector<std::uint64_t> received_from_;  ///< the same of `receive`
  Header header_{};                           ///< of this rank's collective
  std::vector<Header> headers_;               ///< of leaders, by host
  bool headers_under_way_ = false;
  const std::vector<int> served_;  ///< HostLayout::served_by this rank
  const std::vector<PartialSum> outgoing_;
  const std::vector<PartialSum> incoming_;
  const std::vector<Subtree> own_subtrees_;  ///< of this host
  std::vector<SumPart> sums_;                ///< of the tree of this rank's piece, in order
  std::vector<const std::byte*> parts_;      ///< what `sums_` refers to, by rank of the first leaf
  std::vector<std::byte*> received_;         ///< where sums arrive, by incoming sum
  std::vector<std::byte*> made_;  ///< where sums are made, by outgoing sum; nullptr: sent as it is
};

}  // namespace strata::comm
