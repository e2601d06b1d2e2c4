#include "comm/peer_memory/peer_communicator.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

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

PeerCommunicator::PeerCommunicator(std::unique_ptr<PeerLink> link, int rank, int world)
    : link_(std::move(link)),
      board_(link_->board_memory(), world),
      rank_(rank),
      world_(world),
      operands_(static_cast<std::size_t>(world)) {
  what_.reserve(sizeof(Publication::text));  // so that running a collective allocates nothing
  board_.slot(rank).process = ::getpid();
  board_.slot(rank).state.store(RankState::present, std::memory_order_release);
}

PeerCommunicator::~PeerCommunicator() {
  for (Mappings& mappings : mappings_) unmap_peers(mappings);
  board_.slot(rank_).state.store(closed_ ? RankState::closed : RankState::gone,
                                 std::memory_order_release);
}

void PeerCommunicator::begin(std::string_view what, const std::function<void()>& step) {
  STRATA_CHECK(!closed_, "rank", rank_, "after close:", what);
  what_ = what;
  if (board_.aborted()) throw PeerError(board_.abort_reason());
  try {
    step();
  } catch (const std::exception& error) {
    leave_failed(error.what());
    throw;
  }
}

void PeerCommunicator::leave_failed(std::string_view reason) noexcept {
  board_.end_reading(rank_);
  board_.abort(attributed(rank_, reason));
  if (link_->maps_in_place()) board_.wait_for_readers();
}

void PeerCommunicator::begin_reading() {
  if (!board_.begin_reading(rank_)) throw PeerError(board_.abort_reason());
}

void PeerCommunicator::barrier() {
  board_.end_reading(rank_);
  const std::uint32_t seen = board_.barrier_word().count();
  if (!board_.arrive()) wait(board_.barrier_word(), seen, 0, world_);
}

void PeerCommunicator::wait(WakeWord& word, std::uint32_t seen, int from_peer, int to_peer) {
  for (int spin = 0; spin < kSpins && word.count() == seen; ++spin) pause();
  while (word.count() == seen) {
    if (word.poisoned()) throw PeerError(board_.abort_reason());
    if (!word.sleep(seen, kLivenessInterval)) continue;
    require_not_stopped(watch());
    look_for_the_dead(word, seen, from_peer, to_peer);
  }
}

void PeerCommunicator::look_for_the_dead(WakeWord& word, std::uint32_t seen, int from_peer,
                                         int to_peer) {
  for (int peer = from_peer; peer < to_peer; ++peer) {
    if (peer == rank_) continue;
    const RankState state = board_.slot(peer).state.load(std::memory_order_acquire);
    std::string fate = link_->death_of(peer);
    if (state == RankState::gone) fate = "has left without closing";
    if (state == RankState::closed) fate = "has closed its communicator";
    // A peer may do its part and then leave; only one that leaves before is an error.
    if (fate.empty() || word.count() != seen) continue;
    throw PeerError(
        fmt::format("rank {} (process {}) {}; rank {} was waiting for it in collective {} '{}'",
                    peer, board_.slot(peer).process, fate, rank_, begun(), what_));
  }
}

void PeerCommunicator::register_arena(const ArenaRegion& region) {
  begin("register_arena", [&] {
    const int arena = arenas_.add(region);
    link_->offer(arena, region);
    board_.slot(rank_).arena_base = region.base;
    board_.slot(rank_).arena_bytes = region.bytes;
    barrier();
    Mappings& mappings = mappings_.emplace_back(static_cast<std::size_t>(world_));
    for (int peer = 0; peer < world_; ++peer) {
      const RankSlot& slot = board_.slot(peer);
      mappings[peer] = peer == rank_ ? std::span<const std::byte>(region.base, region.bytes)
                                     : link_->map(peer, arena, slot.arena_base, slot.arena_bytes);
    }
    barrier();
    link_->withdraw(arena);  // or each save of a long run would leave descriptors with the store
  });
}

void PeerCommunicator::unregister_arena(const std::byte* base) {
  begin("unregister_arena", [&] {
    unmap_peers(mappings_[static_cast<std::size_t>(arenas_.remove(base))]);
    barrier();  // after it no peer reads this rank's arena
  });
}

void PeerCommunicator::unmap_peers(Mappings& mappings) noexcept {
  for (int peer = 0; peer < static_cast<int>(mappings.size()); ++peer)
    if (peer != rank_ && !mappings[peer].empty()) link_->unmap(peer, mappings[peer]);
  mappings.clear();
}

const std::byte* PeerCommunicator::peer_operand(const Publication& publication, int peer) const {
  const ArenaPlace& place = publication.operand;
  if (place.arena < 0) return nullptr;
  const auto arena = static_cast<std::size_t>(place.arena);
  STRATA_CHECK(arena < mappings_.size() && !mappings_[arena].empty(), "rank", peer, "names arena",
               place.arena);
  return mappings_[arena][peer].data() + place.offset_bytes;
}

Publication PeerCommunicator::publication_of(const Collective& collective, const void* operand,
                                             std::int64_t bytes, const char* role) const {
  Publication publication{fingerprint(collective), arenas_.locate(operand, bytes, what_, role), {}};
  copy_text(publication.text, sizeof publication.text, what_);
  return publication;
}

std::span<const std::byte*> PeerCommunicator::exchange(const Collective& collective,
                                                       const std::byte* operand,
                                                       std::int64_t bytes) {
  const std::size_t turn = exchanges_++ % 2;
  board_.slot(rank_).publications[turn] = publication_of(collective, operand, bytes, "input");
  barrier();
  begin_reading();
  const Publication& first = board_.slot(0).publications[turn];
  for (int peer = 0; peer < world_; ++peer) {
    const Publication& theirs = board_.slot(peer).publications[turn];
    // All ranks compare with rank 0, so all report the same.
    if (theirs.fingerprint != first.fingerprint)
      throw InternalError(
          fmt::format("collective {} differs between ranks: rank 0 runs '{}', rank {} runs '{}'",
                      begun(), first.text, peer, theirs.text));
    operands_[static_cast<std::size_t>(peer)] = peer_operand(theirs, peer);
  }
  return operands_;
}

void PeerCommunicator::abort(const std::string& reason, ExitCode /*code*/) noexcept {
  board_.abort(attributed(rank_, reason));
}

void PeerCommunicator::check() {
  try {
    if (!board_.aborted()) require_not_stopped(watch());
  } catch (const PeerError& error) {
    board_.abort(error.what());
  }
  for (int peer = 0; peer < world_ && !board_.aborted(); ++peer) {
    const RankSlot& slot = board_.slot(peer);
    const RankState state = slot.state.load(std::memory_order_acquire);
    if (peer == rank_ || state == RankState::closed) continue;
    const std::string fate =
        state == RankState::gone ? "has left without closing" : link_->death_of(peer);
    if (!fate.empty())
      board_.abort(fmt::format("rank {} (process {}) {}", peer, slot.process, fate));
  }
  if (board_.aborted()) throw PeerError(board_.abort_reason());
}

void PeerCommunicator::close() {
  if (closed_ || board_.aborted()) return;
  begin("close", [this] { barrier(); });
  closed_ = true;
  board_.slot(rank_).state.store(RankState::closed, std::memory_order_release);
}

}  // namespace strata::comm
