// How bytes travel between ranks of different hosts: the difference between Gloo and rank threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace strata::comm {

/// Kinds of messages: `finish` waits for one kind, while the other stays under way.
enum class Lane { headers, operands };
inline constexpr std::size_t kAllMessages = std::numeric_limits<std::size_t>::max();

/// The connections of one rank with every rank of every other host. Ranks are numbered in the
/// world. One thread sends, receives, finishes, cancels and closes; any thread may call the rest.
class HostLink {
 public:
  virtual ~HostLink() = default;

  /// Called once, before all else: `hear` is called, on any thread, with the reason of a peer that
  /// gives up, until this link is destroyed.
  virtual void listen(std::function<void(std::string_view reason)> hear) = 0;

  /// Begin to send or receive. The bytes stay as they are, and valid, until `finish` returns or
  /// `cancel` has. A message meets the receive of the same two ranks and `tag`; these are in order
  /// and of one size. A broken connection shows in `finish`.
  virtual void send(Lane lane, int peer, std::uint64_t tag, std::span<const std::byte> bytes) = 0;
  virtual void receive(Lane lane, int peer, std::uint64_t tag, std::span<std::byte> bytes) = 0;
  /// Asks whether waiting for `peer` may go on. `fate` is "", or what became of a peer that is dead
  /// and has not done its part.
  using Check = std::function<void(int peer, std::string_view fate)>;
  /// Returns when the first `count` messages under way in the lane, in the order in which they were
  /// begun, are complete, or all if they are fewer; a send once its receiver has begun, too.
  /// Sleeps; calls `check` before it does or soon after, every 200 ms, when a connection breaks and
  /// after a give_up on either side, and lets its exception through.
  virtual void finish(Lane lane, std::size_t count, const Check& check) = 0;
  /// Ends what is under way: from here on no memory of the caller is written.
  virtual void cancel() noexcept = 0;

  /// Tells all peers why this rank gives up, once, and wakes `finish`.
  virtual void give_up(std::string_view reason) noexcept = 0;
  /// Returns "" while `peer` is connected, or has closed; else what became of it, as in "(process
  /// 7 on b) has ended".
  [[nodiscard]] virtual std::string death_of(int peer) const = 0;
  /// Collective over all ranks of all hosts: from here on peers do not miss this rank.
  virtual void close(const std::function<void()>& check) = 0;
};

}  // namespace strata::comm
