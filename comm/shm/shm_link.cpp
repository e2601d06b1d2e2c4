#include "comm/shm/shm_link.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "comm/peer_memory/board.h"
#include "core/error.h"
#include "core/system_call.h"

namespace strata::comm {
namespace {

std::string arena_key(int arena, int rank) {
  return fmt::format("host/comm/arena/{}/{}", arena, rank);
}

std::string process_key(int rank) { return fmt::format("host/comm/process/{}", rank); }

UniqueFd open_process(int rank, const std::string& process) {
  const long fd = ::syscall(SYS_pidfd_open, std::stol(process), 0);
  if (fd < 0 && errno == ESRCH)
    throw PeerError(
        fmt::format("rank {} (process {}) ended before the ranks had met", rank, process));
  return UniqueFd(static_cast<int>(checked(fd, "pidfd_open of a peer rank")));
}

}  // namespace

ShmLink::ShmLink(std::shared_ptr<KeyValueStore> store, int rank, int world,
                 std::chrono::milliseconds start_limit)
    : store_(std::move(store)), rank_(rank), start_limit_(start_limit) {
  const std::size_t bytes = Board::bytes(world);
  UniqueFd fd;
  if (rank == 0) {
    fd = make_memfd("strata-board", bytes);
    store_->put_fd("host/comm/board", fd.get());
  } else {
    fd = store_->get_fd("host/comm/board", start_limit_);
  }
  board_ = MappedFile(fd.get(), bytes, Access::read_write, "communication board");
  store_->put(process_key(rank), std::to_string(::getpid()));
  processes_.resize(static_cast<std::size_t>(world));
  for (int peer = 0; peer < world; ++peer)
    if (peer != rank)
      processes_[peer] = open_process(peer, store_->get(process_key(peer), start_limit_));
}

void ShmLink::offer(int arena, const ArenaRegion& region) {
  if (region.memfd < 0)
    throw InvalidArgument(fmt::format(
        "rank {}: arena of {} bytes is private memory; peers on this host can map memfd "
        "arenas only",
        rank_, region.bytes));
  store_->put_fd(arena_key(arena, rank_), region.memfd);
}

void ShmLink::withdraw(int arena) { store_->drop_fd(arena_key(arena, rank_)); }

std::span<const std::byte> ShmLink::map(int peer, int arena, std::byte* /*base_in_peer*/,
                                        std::int64_t bytes) {
  const std::string key = arena_key(arena, peer);
  const UniqueFd fd = store_->get_fd(key, start_limit_);
  arenas_.emplace_back(fd.get(), static_cast<std::size_t>(bytes), Access::read, key.c_str());
  return arenas_.back().memory();
}

void ShmLink::unmap(int /*peer*/, std::span<const std::byte> mapping) noexcept {
  std::erase_if(arenas_, [mapping](const MappedFile& arena) {
    return arena.memory().data() == mapping.data();
  });
}

std::string ShmLink::death_of(int peer) const {
  pollfd process{
      .fd = processes_[static_cast<std::size_t>(peer)].get(), .events = POLLIN, .revents = 0};
  // A failing poll (out of memory, signal) says nothing about the peer.
  return ::poll(&process, 1, 0) == 1 && (process.revents & POLLIN) != 0 ? "has ended"
                                                                        : std::string();
}

}  // namespace strata::comm
