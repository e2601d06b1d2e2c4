// A device that works beside the host: its memory, streams, events and recordings. What executors,
// communicators and engines know of accelerators; kernels/cuda implements it, and so does a
// simulation (kernels/cuda/host) that runs the same kernels where there is no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/capabilities.h"
#include "kernels/device/stream.h"

namespace strata::kernels {

enum class MemoryKind : std::uint8_t {
  device,  ///< only the device and Device::copy may touch it
  pinned,  ///< host memory at the same address on the device; locked, so transfers need no bounce
};

/// Owns one allocation of any content.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::byte* base() const = 0;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
};

enum class EventUse : std::uint8_t {
  order,   ///< streams wait for it
  host,    ///< the host waits for it; not inside recordings
  timing,  ///< as host, and Device::milliseconds reads it
};

/// A place in a stream's work. Waiting for an event that was never recorded waits for nothing, so
/// events are recorded, in the host's order, before anybody waits.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work that was enqueued once and may be enqueued again as a whole (a CUDA graph).
class Recording {
 public:
  virtual ~Recording() = default;
};

/// A call that Programs will make, as far as choices made beforehand depend on it: nothing reads
/// its memory, addresses stand for their alignment.
struct PlannedCall {
  std::string_view operation;
  KernelCall call;
};

/// How an algorithm is chosen where a library offers several. Choices may change bits, so they are
/// kept (Device::choices) and the same on all ranks.
enum class ChooseBy : std::uint8_t {
  measuring,  ///< the fastest whose bits repeat
  proposal,   ///< the library's first
};

struct DeviceMemoryFacts {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

/// All functions may be called by any thread; a stream, also when recorded, by one at a time.
/// Errors of the device, also late ones of enqueued work, throw HostError from whatever is called
/// next; the device is then of no more use to this process.
class Device {
 public:
  virtual ~Device() = default;

  /// "cuda", "simulated"
  [[nodiscard]] virtual std::string_view backend() const = 0;
  /// One line for people: "NVIDIA H200 (sm_90, 139.8 GiB), driver 13.0, cuBLASLt 13.0.2 from ..."
  [[nodiscard]] virtual std::string description() const = 0;
  /// Name as the vendor spells it: key of rate tables.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Equal for two ranks, on whatever hosts, exactly when they use the same hardware.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Where it is plugged in, as Linux names its folder: "0000:3b:00.0"; empty: nowhere.
  [[nodiscard]] virtual std::string pci_address() const { return {}; }
  [[nodiscard]] virtual DeviceCapabilities capabilities() const = 0;
  [[nodiscard]] virtual DeviceMemoryFacts memory() const = 0;
  [[nodiscard]] virtual const KernelTable& kernels() const = 0;

  /// Chooses for those calls that have no choice yet. Before arenas take the memory: measuring
  /// allocates some.
  virtual void choose(std::span<const PlannedCall> calls, ChooseBy by) {
    (void)calls;
    (void)by;
  }
  /// All choices, as text to keep in a file and to send to other ranks; empty: it has none to make.
  [[nodiscard]] virtual std::string choices() const { return {}; }
  /// Replaces them, before the first run. Throws DataError naming `file`.
  virtual void use_choices(std::string_view text, const std::string& file) {
    (void)text;
    (void)file;
  }
  /// What people should know by now: libraries that are missing, calls that run slower without.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }

  /// Kernels enqueue on the device that the calling thread is bound to: called by a thread before
  /// it runs kernels of this device, when it may have served another since.
  virtual void bind_thread() = 0;

  /// `bytes` > 0, aligned to 256 bytes. Throws OutOfMemory naming kind, bytes and what is free.
  virtual std::unique_ptr<Memory> allocate(MemoryKind kind, std::int64_t bytes) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event(EventUse use) = 0;

  /// `event` is reached when all work enqueued on `stream` so far has completed.
  virtual void record(Stream& stream, Event& event) = 0;
  /// Later work of `stream` starts after `event`, as last recorded, is reached.
  virtual void wait(Stream& stream, const Event& event) = 0;
  [[nodiscard]] virtual bool reached(const Event& event) = 0;
  /// Sleeps until `event` (host, timing), as last recorded, is reached.
  virtual void wait_on_host(const Event& event) = 0;
  /// Between two events (timing) that were reached.
  [[nodiscard]] virtual double milliseconds(const Event& from, const Event& to) = 0;

  /// Between any memory of host and device. Enqueues; host memory must be pinned and stay.
  virtual void copy(Stream& stream, void* to, const void* from, std::int64_t bytes) = 0;
  /// The same at once, outside every stream: done when it returns. Any host memory.
  virtual void copy_now(void* to, const void* from, std::int64_t bytes) = 0;
  /// Zeros memory of this device or pinned, at once.
  virtual void clear_now(void* memory, std::int64_t bytes) = 0;
  /// Marks what this thread enqueues from here to end_range for profilers (NVTX); ranges nest.
  virtual void begin_range(const char* name) { (void)name; }
  virtual void end_range() {}
  /// Sleeps until all work of `stream` has completed.
  virtual void synchronize(Stream& stream) = 0;

  /// From now on work enqueued on `origin`, and on streams that wait for events recorded since on
  /// recorded streams, is kept instead of run. Each such stream must be joined to `origin` by an
  /// event before the end. Allocations, copy_now and waits on the host have no place in between.
  virtual void begin_recording(Stream& origin) = 0;
  virtual std::unique_ptr<Recording> end_recording(Stream& origin) = 0;
  /// Ends a recording that failed halfway, so that its streams serve again.
  virtual void abandon_recording(Stream& origin) noexcept = 0;
  /// Enqueues all of `recording` on `stream`.
  virtual void replay(Stream& stream, Recording& recording) = 0;
};

}  // namespace strata::kernels
