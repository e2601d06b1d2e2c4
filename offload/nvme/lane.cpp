#include "offload/nvme/lane.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/error.h"
#include "offload/nvme/disk_alignment.h"

namespace strata::offload {
namespace {

/// Limit of consecutive attempts that are interrupted or transfer nothing.
constexpr int kMostAttempts = 100;

}  // namespace

Lane::Lane(std::unique_ptr<BlockIo> io, int depth, Finished finished)
    : io_(std::move(io)),
      finished_(std::move(finished)),
      depth_(std::clamp(depth, 1, io_->capacity())),
      slots_(static_cast<std::size_t>(io_->capacity())),
      thread_([this] { run(); }) {}

Lane::~Lane() {
  if (thread_.joinable()) stop();
}

void Lane::push(TransferPiece& piece) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    (piece.direction == Direction::read ? reads_ : writes_).push(&piece);
    if (under_way_ >= depth_) return;  // the next completion takes it
  }
  io_->wake();
}

void Lane::set_depth(int depth) {
  const std::lock_guard lock(mutex_);
  depth_ = std::clamp(depth, 1, io_->capacity());
}

int Lane::register_memory(const MemorySlices& slices) {
  const std::lock_guard lock(mutex_);
  if (under_way_ > 0 || !reads_.empty() || !writes_.empty())
    throw InternalError("memory is registered while transfers are under way");
  return io_->register_memory(slices);
}

std::optional<Underway> Lane::oldest(const Transfer* transfer) const {
  const std::lock_guard lock(mutex_);
  const Slot* found = nullptr;
  for (const Slot& slot : slots_)
    if (slot.piece && (transfer == nullptr || slot.piece->transfer == transfer) &&
        (found == nullptr || slot.since < found->since))
      found = &slot;
  if (found == nullptr) return std::nullopt;
  const TransferPiece& piece = *found->piece;
  return Underway{piece.transfer,      piece.direction, std::string(piece.what),
                  piece.device_offset, piece.bytes,     found->since};
}

void Lane::begin_to_stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    reads_.clear();
    writes_.clear();
  }
  io_->wake();
}

void Lane::stop() noexcept {
  begin_to_stop();
  thread_.join();
}

void Lane::stop_or_abandon(std::unique_ptr<Lane> lane, std::chrono::milliseconds longest,
                           std::shared_ptr<const void> memory) noexcept {
  lane->begin_to_stop();
  Lane& stopped = *lane;
  std::unique_lock lock(stopped.mutex_);
  const auto is_stuck = [&] {
    const auto limit = std::chrono::steady_clock::now() - longest;
    return std::ranges::any_of(stopped.slots_, [&](const Slot& slot) {
      return slot.piece != nullptr && slot.since <= limit;
    });
  };
  while (!stopped.over_ && !(stopped.reaping_ && is_stuck()))
    stopped.changed_.wait_for(lock, longest / 4);
  if (stopped.over_) {
    lock.unlock();
    return stopped.stop();
  }
  stopped.thread_.detach();
  stopped.memory_ = std::move(memory);
  stopped.self_ = std::move(lane);
}

void Lane::run() noexcept {
  std::vector<std::size_t> begun;
  for (;;) {
    begun.clear();
    {
      const std::lock_guard lock(mutex_);
      take_pieces(begun);
      if (stopping_ && under_way_ == 0 && ended_.empty()) {
        over_ = true;
        changed_.notify_one();
        return;
      }
    }
    for (const std::size_t slot : begun) submit(slot);
    if (!ended_.empty()) {
      // Begin new requests before the callbacks: the device may have completed all it had.
      io_->begin();
      for (const Ended& ended : ended_) finished_(*ended.piece, ended.error_number);
      ended_.clear();
      continue;
    }
    if (!reap_and_complete()) return;
  }
}

bool Lane::reap_and_complete() {
  std::array<BlockCompletion, 64> completions;
  {
    const std::lock_guard lock(mutex_);
    reaping_ = true;
    if (stopping_) changed_.notify_one();
  }
  std::size_t count = io_->reap(completions);
  std::unique_ptr<Lane> self;  // destroyed last, at return
  {
    const std::lock_guard lock(mutex_);
    reaping_ = false;
    self = std::move(self_);
  }
  if (self != nullptr) {
    // Keep the device until every request has ended.
    for (int left = under_way_;;) {
      left -= static_cast<int>(count);
      if (left <= 0) return false;
      count = io_->reap(completions);
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    complete(static_cast<std::size_t>(completions[i].id), completions[i].result);
  return true;
}

void Lane::take_pieces(std::vector<std::size_t>& begun) {
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < slots_.size() && under_way_ < depth_; ++i) {
    if (slots_[i].piece) continue;
    TransferPiece* const piece = next_piece();
    if (piece == nullptr) return;
    slots_[i] = Slot{.piece = piece, .since = now};
    ++under_way_;
    begun.push_back(i);
  }
}

TransferPiece* Lane::next_piece() {
  const bool write = writes_.empty() ? false : reads_.empty() || write_is_next_;
  Queue& queue = write ? writes_ : reads_;
  if (queue.empty()) return nullptr;
  write_is_next_ = !write;
  return queue.pop();
}

void Lane::submit(std::size_t slot) {
  const Slot& state = slots_[slot];
  const TransferPiece& piece = *state.piece;
  io_->submit({piece.direction, piece.device_offset + state.done_bytes,
               piece.memory + state.done_bytes, piece.bytes - state.done_bytes, slot});
}

void Lane::complete(std::size_t slot, std::int64_t result) {
  Slot& state = slots_[slot];
  const TransferPiece& piece = *state.piece;
  const bool interrupted = result == -EINTR || result == -EAGAIN;
  if (result < 0 && !interrupted) {
    if (piece.direction == Direction::write || std::exchange(state.failed_before, true))
      return finish(slot, static_cast<int>(-result));
    return submit(slot);
  }
  if (result > 0) {
    // The rest of a short transfer begins at an aligned offset, so some bytes may go over twice.
    const std::int64_t rest = piece.bytes - state.done_bytes;
    const std::int64_t progress = result < rest ? round_down(result) : rest;
    state.done_bytes += progress;
    if (progress > 0) state.attempts = 0;
    if (progress == rest) return finish(slot, 0);
  }
  if (++state.attempts == kMostAttempts) return finish(slot, interrupted ? EAGAIN : kShort);
  submit(slot);
}

void Lane::finish(std::size_t slot, int error_number) {
  const std::lock_guard lock(mutex_);
  ended_.push_back({std::exchange(slots_[slot].piece, nullptr), error_number});
  --under_way_;
}

}  // namespace strata::offload
