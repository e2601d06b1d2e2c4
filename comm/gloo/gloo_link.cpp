#include "comm/gloo/gloo_link.h"

#include <fmt/core.h>
#include <gloo/common/error.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "comm/gloo/signal_block.h"
#include "core/check.h"
#include "core/error.h"

namespace strata::comm {
namespace {

constexpr std::chrono::milliseconds kCheckInterval{200};
// Gloo breaks all connections when a wait times out, so waits never do; others wake them.
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);
// How long a rank that fails waits until its reason is on its way.
constexpr std::chrono::milliseconds kFarewellTimeout{200};
constexpr std::uint64_t kFarewellTag = 8;

}  // namespace

std::string reason_of(const std::exception& error) {
  std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  if (text.starts_with('[') && end != std::string_view::npos) text.remove_prefix(end + 2);
  return std::string(text);
}

GlooLink::GlooLink(const GlooPlace& place) : rank_(place.rank) {
  const HostLayout& layout = place.layout;
  for (int rank = 0; rank < layout.world; ++rank)
    if (layout.host_of(rank) != layout.host_of(rank_)) {
      peers_.push_back(std::make_unique<Peer>());
      peers_.back()->rank = rank;
    }
  open_device(place.address);
  connect(place);
  greet(place);
  const PipeSignalBlock no_signal;
  for (const auto& peer : peers_) {
    peer->hears = buffer_over(&peer->farewell, sizeof peer->farewell);
    peer->hears->recv(peer->rank, kFarewellTag);
  }
}

GlooLink::~GlooLink() {
  cancel();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  for (const auto& peer : peers_) {
    peer->hears->abortWaitRecv();
    if (peer->ear.joinable()) peer->ear.join();
    peer->hears.reset();
  }
  farewells_.clear();
}

std::unique_ptr<GlooLink::Buffer> GlooLink::buffer_over(const void* data, std::size_t bytes) {
  // const_cast, since Gloo has one type of buffer for both directions.
  return context_->createUnboundBuffer(const_cast<void*>(data), bytes);
}

GlooLink::Peer& GlooLink::peer_of(int rank) {
  const auto found = std::ranges::find(peers_, rank, [](const auto& peer) { return peer->rank; });
  STRATA_CHECK(found != peers_.end(), "rank", rank, "is on this host");
  return **found;
}

void GlooLink::listen(std::function<void(std::string_view)> hear) {
  hear_ = std::move(hear);
  const AllSignalsBlock no_signals;
  for (const auto& peer : peers_)
    peer->ear = std::thread([this, &peer = *peer] { hear_farewell(peer); });
  ticker_ = std::thread([this] { tick(); });
}

void GlooLink::hear_farewell(Peer& peer) {
  Presence presence = Presence::gone;
  std::string fate;
  try {
    while (!peer.hears->waitRecv(nullptr, kForever)) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    presence = peer.farewell.gives_up != 0 ? Presence::gave_up : Presence::closed;
  } catch (const std::exception& error) {
    fate = fmt::format("(process {} on {}) has ended or is cut off: {}", peer.hello.process,
                       peer.hello.host, reason_of(error));
  }
  if (presence == Presence::gave_up) {
    peer.farewell.reason[sizeof peer.farewell.reason - 1] = '\0';
    hear_(peer.farewell.reason);
  }
  {
    const std::lock_guard lock(mutex_);
    peer.presence = presence;
    peer.fate = std::move(fate);
  }
  changed_.notify_all();
  if (presence != Presence::closed) wake();
}

void GlooLink::tick() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kCheckInterval, [this] { return stopping_; })) {
    if (waited_ == nullptr) continue;
    lock.unlock();
    wake();
    lock.lock();
  }
}

void GlooLink::wake() {
  const std::lock_guard lock(mutex_);
  wakes_.fetch_add(1);
  if (waited_ == nullptr) return;
  if (waited_->sends)
    waited_->buffer->abortWaitSend();
  else
    waited_->buffer->abortWaitRecv();
}

void GlooLink::begin(Lane lane, int peer, std::uint64_t tag, const void* data, std::size_t bytes,
                     bool sends) {
  const PipeSignalBlock no_signal;
  std::vector<Operation>& operations = operations_[static_cast<std::size_t>(lane)];
  operations.push_back({buffer_over(data, bytes), peer, sends});
  try {
    if (sends)
      operations.back().buffer->send(peer, tag);
    else
      operations.back().buffer->recv(peer, tag);
  } catch (const gloo::Exception&) {
    // The connection is broken. The wait for it tells why, after what peers may have said.
    wakes_.fetch_add(1);
  }
}

void GlooLink::send(Lane lane, int peer, std::uint64_t tag, std::span<const std::byte> bytes) {
  begin(lane, peer, tag, bytes.data(), bytes.size(), true);
}

void GlooLink::receive(Lane lane, int peer, std::uint64_t tag, std::span<std::byte> bytes) {
  begin(lane, peer, tag, bytes.data(), bytes.size(), false);
}

bool GlooLink::wait(Operation& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (wakes_.load() != seen_wakes_) return false;
    waited_ = &operation;
  }
  bool complete = false;
  try {
    complete = operation.sends ? operation.buffer->waitSend(nullptr, kForever)
                               : operation.buffer->waitRecv(nullptr, kForever);
  } catch (const gloo::Exception&) {
    // Stays incomplete; the peer's ear hears the same and says who it is.
    std::unique_lock lock(mutex_);
    waited_ = nullptr;
    changed_.wait_for(lock, kCheckInterval,
                      [&] { return peer_of(operation.peer).presence != Presence::connected; });
    if (peer_of(operation.peer).presence == Presence::closed)
      throw PeerError(fmt::format("rank {} (process {} on {}) has closed its communicator",
                                  operation.peer, peer_of(operation.peer).hello.process,
                                  peer_of(operation.peer).hello.host));
    wakes_.fetch_add(1);
    return false;
  }
  const std::lock_guard lock(mutex_);
  waited_ = nullptr;
  return complete;
}

void GlooLink::finish(Lane lane, std::size_t count, const Check& check) {
  std::vector<Operation>& operations = operations_[static_cast<std::size_t>(lane)];
  std::vector<Operation>& finished = finished_[static_cast<std::size_t>(lane)];
  const auto end =
      operations.begin() + static_cast<std::ptrdiff_t>(std::min(count, operations.size()));
  for (auto operation = operations.begin(); operation != end; ++operation) {
    while (!wait(*operation)) {
      seen_wakes_ = wakes_.load();
      const std::string fate = death_of(operation->peer);
      // The peer may have done its part before it died.
      if (!fate.empty() && wait(*operation)) break;
      check(operation->peer, fate);
    }
  }
  // Gloo's thread may still be on its way out of a buffer; whoever destroys it then spins.
  finished.assign(std::make_move_iterator(operations.begin()), std::make_move_iterator(end));
  operations.erase(operations.begin(), end);
}

void GlooLink::cancel() noexcept {
  for (std::vector<Operation>& operations : operations_)
    std::erase_if(operations, [](const Operation& operation) { return !operation.sends; });
  const auto end = std::chrono::steady_clock::now() + kFarewellTimeout;
  {
    const std::lock_guard lock(farewell_mutex_);
    for (const auto& buffer : farewells_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      try {
        buffer->waitSend(nullptr, std::max(left, std::chrono::milliseconds(1)));
      } catch (const std::exception&) {
        // The peer is gone, or does not take it in time; Gloo then breaks all connections.
      }
    }
    farewells_.clear();
  }
  for (std::vector<Operation>& operations : operations_) operations.clear();
  for (std::vector<Operation>& operations : finished_) operations.clear();
}

void GlooLink::send_farewell() {
  const PipeSignalBlock no_signal;
  farewells_.reserve(peers_.size());
  for (const auto& peer : peers_) {
    {
      const std::lock_guard lock(mutex_);
      // A peer that closes waits for this rank's farewell, too, though it has sent its own.
      const bool closes_too = peer->presence == Presence::closed && farewell_.gives_up == 0;
      if (peer->presence != Presence::connected && !closes_too) continue;
    }
    try {
      auto buffer = buffer_over(&farewell_, sizeof farewell_);
      buffer->send(peer->rank, kFarewellTag);
      farewells_.push_back(std::move(buffer));
    } catch (const gloo::Exception&) {
      // The connection is broken: the peer's ear has heard it.
    }
  }
}

void GlooLink::give_up(std::string_view reason) noexcept {
  {
    const std::lock_guard lock(farewell_mutex_);
    if (!std::exchange(said_farewell_, true)) {
      farewell_.gives_up = 1;
      reason.copy(farewell_.reason, sizeof farewell_.reason - 1);
      send_farewell();
    }
  }
  wake();
}

std::string GlooLink::death_of(int peer) const {
  const std::lock_guard lock(mutex_);
  for (const auto& other : peers_)
    if (other->rank == peer) return other->fate;
  return {};
}

void GlooLink::close(const std::function<void()>& check) {
  {
    const std::lock_guard lock(farewell_mutex_);
    if (std::exchange(said_farewell_, true)) return;
    send_farewell();
    // Peers take it at any time: their receives are posted.
    for (const auto& buffer : farewells_) {
      try {
        buffer->waitSend(nullptr, kForever);
      } catch (const gloo::Exception&) {
        // It has died since the last meeting, when nobody needs it any more.
      }
    }
    farewells_.clear();
  }
  std::unique_lock lock(mutex_);
  const auto all_have_left = [this] {
    return std::ranges::none_of(
        peers_, [](const auto& peer) { return peer->presence == Presence::connected; });
  };
  while (!changed_.wait_for(lock, kCheckInterval, all_have_left)) {
    lock.unlock();
    check();
    lock.lock();
  }
}

}  // namespace strata::comm

extern "C" __attribute__((visibility("default"))) strata::comm::HostLink* strata_make_gloo_link(
    const strata::comm::GlooPlace& place) {
  return new strata::comm::GlooLink(place);
}
