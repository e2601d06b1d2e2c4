#include "comm/peer_memory/peer_group.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "comm/copy_bytes.h"
#include "comm/first_cause.h"
#include "core/check.h"

namespace strata::comm {
namespace {

// Interval between looks at the peers and the launcher's word to stop: a killed rank is noticed
// well within a second.
constexpr std::chrono::milliseconds kLivenessInterval{200};
// Few, since ranks may outnumber cores: enough to catch a peer that arrives at the same moment.
constexpr int kSpins = 64;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

PeerGroup::PeerGroup(std::unique_ptr<PeerLink> link, int rank, int ranks, const Communicator& owner,
                     int first_rank)
    : link_(std::move(link)),
      board_(link_->board_memory(), ranks),
      owner_(owner),
      rank_(rank),
      ranks_(ranks),
      first_rank_(first_rank),
      operands_(static_cast<std::size_t>(ranks)) {
  what_.reserve(kDescriptionBytes);  // so that running a collective allocates nothing
  board_.slot(rank).process = ::getpid();
  board_.slot(rank).state.store(RankState::present, std::memory_order_release);
}

PeerGroup::~PeerGroup() {
  for (Mappings& mappings : mappings_) unmap_peers(mappings);
  board_.slot(rank_).state.store(closed_ ? RankState::closed : RankState::gone,
                                 std::memory_order_release);
}

void PeerGroup::begin(std::string_view what, const std::function<void()>& step) {
  STRATA_CHECK(!closed_, "rank", first_rank_ + rank_, "after close:", what);
  what_ = what;
  require_alive();
  try {
    step();
  } catch (const std::exception& error) {
    leave_failed(error.what());
    throw;
  }
}

void PeerGroup::leave_failed(std::string_view reason) noexcept {
  board_.end_reading(rank_);
  board_.abort(attributed(first_rank_ + rank_, reason));
  if (link_->maps_in_place()) board_.wait_for_readers();
}

void PeerGroup::require_alive() const {
  if (board_.aborted()) throw PeerError(board_.abort_reason());
}

void PeerGroup::begin_reading() {
  if (!board_.begin_reading(rank_)) throw PeerError(board_.abort_reason());
}

void PeerGroup::barrier() {
  board_.end_reading(rank_);
  const std::uint32_t seen = board_.barrier_word().count();
  if (!board_.arrive()) wait(board_.barrier_word(), seen, 0, ranks_);
}

void PeerGroup::wait(WakeWord& word, std::uint32_t seen, int from_peer, int to_peer) {
  for (int spin = 0; spin < kSpins && word.count() == seen; ++spin) pause();
  while (word.count() == seen) {
    if (word.poisoned()) throw PeerError(board_.abort_reason());
    if (!word.sleep(seen, kLivenessInterval)) continue;
    require_not_stopped(owner_.watch());
    for (int peer = from_peer; peer < to_peer; ++peer) {
      const std::string fate = fate_of(peer);
      // A peer may do its part and then leave; only one that leaves before is an error.
      if (!fate.empty() && word.count() == seen) miss(peer, fate);
    }
  }
}

std::string PeerGroup::fate_of(int peer) const {
  if (peer == rank_) return {};
  const RankState state = board_.slot(peer).state.load(std::memory_order_acquire);
  std::string fate = link_->death_of(peer);
  if (state == RankState::gone) fate = "has left without closing";
  if (state == RankState::closed) fate = "has closed its communicator";
  return fate;
}

void PeerGroup::miss(int peer, std::string_view fate) const {
  require_alive();  // a peer that gave up before it left has said why
  throw PeerError(
      fmt::format("rank {} (process {}) {}; rank {} was waiting for it in collective {} '{}'",
                  first_rank_ + peer, board_.slot(peer).process, fate, first_rank_ + rank_,
                  owner_.begun(), what_));
}

void PeerGroup::register_arena(const ArenaRegion& region) {
  begin("register_arena", [&] {
    const int arena = arenas_.add(region);
    link_->offer(arena, region);
    board_.slot(rank_).arena_base = region.base;
    board_.slot(rank_).arena_bytes = region.bytes;
    barrier();
    Mappings& mappings = mappings_.emplace_back(static_cast<std::size_t>(ranks_));
    for (int peer = 0; peer < ranks_; ++peer) {
      const RankSlot& slot = board_.slot(peer);
      mappings[peer] = peer == rank_ ? std::span<const std::byte>(region.base, region.bytes)
                                     : link_->map(peer, arena, slot.arena_base, slot.arena_bytes);
    }
    barrier();
    link_->withdraw(arena);  // or each save of a long run would leave descriptors with the store
  });
}

void PeerGroup::unregister_arena(const std::byte* base) {
  begin("unregister_arena", [&] {
    unmap_peers(mappings_[static_cast<std::size_t>(arenas_.remove(base))]);
    barrier();  // after it no peer reads this rank's arena
  });
}

void PeerGroup::unmap_peers(Mappings& mappings) noexcept {
  for (int peer = 0; peer < static_cast<int>(mappings.size()); ++peer)
    if (peer != rank_ && !mappings[peer].empty()) link_->unmap(peer, mappings[peer]);
  mappings.clear();
}

const std::byte* PeerGroup::peer_operand(const Publication& publication, int peer) const {
  const ArenaPlace& place = publication.operand;
  if (place.arena < 0) return nullptr;
  const auto arena = static_cast<std::size_t>(place.arena);
  STRATA_CHECK(arena < mappings_.size() && !mappings_[arena].empty(), "rank", first_rank_ + peer,
               "names arena", place.arena);
  return mappings_[arena][peer].data() + place.offset_bytes;
}

Publication PeerGroup::publication_of(const Collective& collective, const void* operand,
                                      std::int64_t bytes, const char* role) const {
  Publication publication{fingerprint(collective), arenas_.locate(operand, bytes, what_, role), {}};
  copy_text(publication.text, sizeof publication.text, what_);
  return publication;
}

std::span<const std::byte*> PeerGroup::exchange(const Collective& collective,
                                                const std::byte* operand, std::int64_t bytes) {
  const std::size_t turn = exchanges_++ % 2;
  board_.slot(rank_).publications[turn] = publication_of(collective, operand, bytes, "input");
  barrier();
  begin_reading();
  const Publication& first = board_.slot(0).publications[turn];
  for (int peer = 0; peer < ranks_; ++peer) {
    const Publication& theirs = board_.slot(peer).publications[turn];
    // All ranks compare with the first, so all report the same.
    if (theirs.fingerprint != first.fingerprint)
      throw InternalError(
          fmt::format("collective {} differs between ranks: rank {} runs '{}', rank {} runs '{}'",
                      owner_.begun(), first_rank_, first.text, first_rank_ + peer, theirs.text));
    operands_[static_cast<std::size_t>(peer)] = peer_operand(theirs, peer);
  }
  return operands_;
}

void PeerGroup::send(const Collective& collective, int peer, const std::byte* input,
                     std::int64_t bytes) {
  Mailbox& mailbox = board_.mailbox(rank_, peer);
  const std::uint32_t seen = mailbox.taken.count();
  mailbox.publication = publication_of(collective, input, bytes, "input");
  mailbox.posted.advance();
  wait(mailbox.taken, seen, peer, peer + 1);
}

void PeerGroup::receive(const Collective& collective, int peer, std::byte* output,
                        std::int64_t bytes) {
  Mailbox& mailbox = board_.mailbox(peer, rank_);
  // The sender waits until each message is taken, so it is at most one ahead.
  const std::uint32_t taken = mailbox.taken.count();
  wait(mailbox.posted, taken, peer, peer + 1);
  begin_reading();
  const Publication& theirs = mailbox.publication;
  if (theirs.fingerprint != fingerprint(collective))
    throw InternalError(
        fmt::format("collective {} differs between ranks: rank {} runs '{}', rank {} runs '{}'",
                    owner_.begun(), first_rank_ + peer, theirs.text, first_rank_ + rank_, what_));
  copy_bytes(output, peer_operand(theirs, peer), bytes);
  board_.end_reading(rank_);
  mailbox.taken.advance();
}

void PeerGroup::check() {
  try {
    if (!board_.aborted()) require_not_stopped(owner_.watch());
  } catch (const PeerError& error) {
    board_.abort(error.what());
  }
  for (int peer = 0; peer < ranks_ && !board_.aborted(); ++peer) {
    const RankSlot& slot = board_.slot(peer);
    if (slot.state.load(std::memory_order_acquire) == RankState::closed) continue;
    if (const std::string fate = fate_of(peer); !fate.empty())
      board_.abort(fmt::format("rank {} (process {}) {}", first_rank_ + peer, slot.process, fate));
  }
  require_alive();
}

void PeerGroup::close() {
  closed_ = true;
  board_.slot(rank_).state.store(RankState::closed, std::memory_order_release);
}

}  // namespace strata::comm
