// The interface of an accelerator: memory, streams, events and recordings. Executors, communicators
// and engines know nothing else of it. kernels/cuda implements it, and so does a simulation
// (kernels/cuda/testing/simulated), which runs the same kernels where there is no GPU.
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

/// Owns one allocation, whose content is undefined at first.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::byte* base() const = 0;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
};

enum class EventUse : std::uint8_t {
  order,   ///< streams wait for it
  host,    ///< the host waits for it; not inside recordings
  timing,  ///< like host; Device::milliseconds reads it, too
};

/// A point in a stream's work. A wait for an event that was never recorded returns at once, so the
/// host must record an event before it enqueues a wait for it.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work that was recorded once and may be enqueued as a whole any number of times (a CUDA graph).
class Recording {
 public:
  virtual ~Recording() = default;
};

/// A call that Programs will make, described for Device::choose: types, shapes and attributes.
/// Nothing reads the memory of its operands; only the alignment of their addresses counts.
struct PlannedCall {
  std::string_view operation;
  KernelCall call;
};

/// The way an algorithm is chosen where a library offers several. A choice may change bits, so
/// choices are stored (Device::choices), and all ranks use the same ones.
enum class ChooseBy : std::uint8_t {
  measuring,  ///< takes the fastest one whose bits repeat
  proposal,   ///< takes the library's first proposal
};

struct DeviceMemoryFacts {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

/// Any thread may call any function; a stream, also one being recorded, serves one thread at a
/// time. Errors of the device, also late ones of enqueued work, throw HostError from whatever is
/// called next; this process cannot use the device any more then.
class Device {
 public:
  virtual ~Device() = default;

  /// "cuda", "simulated"
  [[nodiscard]] virtual std::string_view backend() const = 0;
  /// One line for people: "NVIDIA H200 (sm_90, 139.8 GiB), driver 13.0, cuBLASLt 13.0.2 from ..."
  [[nodiscard]] virtual std::string description() const = 0;
  /// The name as the vendor spells it, by which configs/hardware is searched.
  [[nodiscard]] virtual std::string name() const = 0;
  /// A text that two ranks, on whatever hosts, have in common exactly when they share the hardware.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// The PCI address as Linux names its folder: "0000:3b:00.0"; empty: the device has none.
  [[nodiscard]] virtual std::string pci_address() const { return {}; }
  [[nodiscard]] virtual DeviceCapabilities capabilities() const = 0;
  [[nodiscard]] virtual DeviceMemoryFacts memory() const = 0;
  [[nodiscard]] virtual const KernelTable& kernels() const = 0;

  /// Chooses an algorithm for each call that has no choice yet. Measuring allocates device memory,
  /// so this comes before the arenas are allocated.
  virtual void choose(std::span<const PlannedCall> calls, ChooseBy by) {
    (void)calls;
    (void)by;
  }
  /// All choices, as text for a file and for other ranks; empty: this device has none to make.
  [[nodiscard]] virtual std::string choices() const { return {}; }
  /// Replaces all choices, before the first run. Throws DataError, which names `file`.
  virtual void use_choices(std::string_view text, const std::string& file) {
    (void)text;
    (void)file;
  }
  /// Messages for the user so far: missing libraries, calls that run slower for lack of one.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }

  /// Binds the calling thread to this device, on which its kernels then enqueue. A thread calls it
  /// before it runs kernels if it may have served another device since.
  virtual void bind_thread() = 0;

  /// Allocates `bytes` > 0, aligned to 256 bytes. OutOfMemory says kind, bytes and what is free.
  virtual std::unique_ptr<Memory> allocate(MemoryKind kind, std::int64_t bytes) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event(EventUse use) = 0;

  /// `event` is reached when all work enqueued on `stream` so far has completed.
  virtual void record(Stream& stream, Event& event) = 0;
  /// Later work of `stream` starts after `event`, as last recorded, is reached.
  virtual void wait(Stream& stream, const Event& event) = 0;
  [[nodiscard]] virtual bool reached(const Event& event) = 0;
  /// Sleeps until `event` (of use host or timing), as last recorded, is reached.
  virtual void wait_on_host(const Event& event) = 0;
  /// The time between two events (of use timing), both already reached.
  [[nodiscard]] virtual double milliseconds(const Event& from, const Event& to) = 0;

  /// Enqueues a copy between any memories. Host memory is pinned, and stays until the copy ran.
  virtual void copy(Stream& stream, void* to, const void* from, std::int64_t bytes) = 0;
  /// Enqueues a store of `value` to a word of pinned memory, which the host reads at any time
  /// (std::atomic_ref). May be recorded.
  virtual void mark(Stream& stream, std::uint32_t* word, std::uint32_t value) = 0;
  /// Copies at once, outside every stream, and returns when done. Host memory may be of any kind.
  virtual void copy_now(void* to, const void* from, std::int64_t bytes) = 0;
  /// Zeros pinned memory or memory of this device at once, and returns when done.
  virtual void clear_now(void* memory, std::int64_t bytes) = 0;
  /// Marks what this thread enqueues from here to end_range for profilers (NVTX); ranges nest.
  virtual void begin_range(const char* name) { (void)name; }
  virtual void end_range() {}
  /// Sleeps until all work of `stream` has completed.
  virtual void synchronize(Stream& stream) = 0;

  /// Starts to record: work enqueued on `origin`, and on streams that then wait for an event of a
  /// recorded stream, is kept and not run. An event must join each such stream to `origin` before
  /// the end. This thread must not allocate, call copy_now or wait meanwhile; others may.
  virtual void begin_recording(Stream& origin) = 0;
  virtual std::unique_ptr<Recording> end_recording(Stream& origin) = 0;
  /// Ends a recording that failed halfway, so that its streams can be used again.
  virtual void abandon_recording(Stream& origin) noexcept = 0;
  /// Enqueues all of `recording` on `stream`.
  virtual void replay(Stream& stream, Recording& recording) = 0;
};

}  // namespace strata::kernels
