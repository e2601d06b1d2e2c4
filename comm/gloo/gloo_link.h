// Connections between hosts over Gloo's TCP transport. Only sources of the module include this.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/gloo/gloo_module.h"
#include "comm/gloo/proof.h"

namespace strata::comm {

/// Uses Gloo's sends and receives alone. One thread per peer sleeps until the peer gives up, closes
/// or is cut off; Gloo has a thread of its own. Gloo ends the process when a peer breaks its
/// protocol: that needs a stranger who connects to a rank's port before the rank it is meant for.
class GlooLink final : public HostLink {
 public:
  explicit GlooLink(const GlooPlace& place);
  ~GlooLink() override;
  GlooLink(const GlooLink&) = delete;
  GlooLink& operator=(const GlooLink&) = delete;

  void listen(std::function<void(std::string_view reason)> hear) override;
  void send(Lane lane, int peer, std::uint64_t tag, std::span<const std::byte> bytes) override;
  void receive(Lane lane, int peer, std::uint64_t tag, std::span<std::byte> bytes) override;
  void finish(Lane lane, std::size_t count, const Check& check) override;
  void cancel() noexcept override;
  void give_up(std::string_view reason) noexcept override;
  [[nodiscard]] std::string death_of(int peer) const override;
  void close(const std::function<void()>& check) override;

 private:
  using Buffer = gloo::transport::UnboundBuffer;

  /// The last message of a rank to a peer.
  struct Farewell {
    std::uint32_t gives_up;  ///< 0: it closes
    char reason[4092];
  };
  /// The first message of a rank to a peer.
  struct Hello {
    Proof proof;
    std::int64_t process;
    char host[64];
  };
  enum class Presence { connected, closed, gave_up, gone };
  struct Peer {
    int rank = 0;
    Hello hello{};
    Farewell farewell{};
    std::unique_ptr<Buffer> hears;  ///< receives the farewell
    std::thread ear;
    Presence presence = Presence::connected;  ///< guarded by mutex_
    std::string fate;                         ///< guarded by mutex_
  };
  struct Operation {
    std::unique_ptr<Buffer> buffer;
    int peer;
    bool sends;
  };

  // Meeting (gloo_meeting.cpp).
  void open_device(const std::string& address);
  void connect(const GlooPlace& place);
  void greet(const GlooPlace& place);

  std::unique_ptr<Buffer> buffer_over(const void* data, std::size_t bytes);
  void begin(Lane lane, int peer, std::uint64_t tag, const void* data, std::size_t bytes,
             bool sends);
  /// Waits for one operation: true when it is complete, false when it was woken.
  [[nodiscard]] bool wait(Operation& operation);
  void wake();
  void hear_farewell(Peer& peer);
  void tick();
  /// Sends the farewell to all peers that wait for it; the buffers go to farewells_.
  void send_farewell();
  [[nodiscard]] Peer& peer_of(int rank);

  int rank_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< ranks of other hosts, rising
  // The communicating thread alone uses these, by lane.
  std::array<std::vector<Operation>, 2> operations_;  ///< under way
  std::array<std::vector<Operation>, 2> finished_;    ///< of the last finish
  std::uint64_t seen_wakes_ = 0;                      ///< of the communicating thread
  std::function<void(std::string_view)> hear_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< a peer's presence, or stopping_
  Operation* waited_ = nullptr;      ///< guarded by mutex_
  std::atomic<std::uint64_t> wakes_{0};
  bool stopping_ = false;  ///< guarded by mutex_

  std::mutex farewell_mutex_;  ///< guards what follows; taken before mutex_
  bool said_farewell_ = false;
  Farewell farewell_{};
  std::vector<std::unique_ptr<Buffer>> farewells_;

  std::thread ticker_;  ///< wakes `finish` every 200 ms
};

/// Returns Gloo's message without the source line that it begins with.
std::string reason_of(const std::exception& error);

}  // namespace strata::comm
