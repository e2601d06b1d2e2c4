// A kernels::Device without a GPU, for tests only. Each stream is a thread that runs what was
// enqueued, so work of different streams really runs at once, and in orders that only waits
// restrict. Kernels run as simulation.h says.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/device/device.h"

namespace strata::cuda {

/// Memory is host memory, filled with 0xFF. A replay of a recording runs its nodes one after
/// another, each time in another order that their dependencies allow. Recording as CUDA forbids it
/// ends the process: with waits on the host, or streams that are not joined to the origin.
class SimulatedDevice : public kernels::Device {
 public:
  /// The device has `memory_bytes` of device memory. If `delays` is not 0, streams sleep for random
  /// times, of which it is the seed, before each piece of work.
  explicit SimulatedDevice(ThreadOrder order, std::int64_t memory_bytes = std::int64_t{1} << 40,
                           std::uint64_t delays = 0);
  ~SimulatedDevice() override;

  [[nodiscard]] std::string_view backend() const override { return "simulated"; }
  [[nodiscard]] std::string description() const override { return "simulated CUDA device"; }
  [[nodiscard]] std::string name() const override { return "simulated"; }
  [[nodiscard]] std::string identity() const override { return "the simulated GPU"; }
  [[nodiscard]] kernels::DeviceCapabilities capabilities() const override;
  [[nodiscard]] kernels::DeviceMemoryFacts memory() const override;
  [[nodiscard]] const kernels::KernelTable& kernels() const override;

  void bind_thread() override {}
  std::unique_ptr<kernels::Memory> allocate(kernels::MemoryKind kind, std::int64_t bytes) override;
  std::unique_ptr<kernels::Stream> make_stream() override;
  std::unique_ptr<kernels::Event> make_event(kernels::EventUse use) override;

  void record(kernels::Stream& stream, kernels::Event& event) override;
  void wait(kernels::Stream& stream, const kernels::Event& event) override;
  [[nodiscard]] bool reached(const kernels::Event& event) override;
  void wait_on_host(const kernels::Event& event) override;
  [[nodiscard]] double milliseconds(const kernels::Event& from, const kernels::Event& to) override;

  void copy(kernels::Stream& stream, void* to, const void* from, std::int64_t bytes) override;
  void mark(kernels::Stream& stream, std::uint32_t* word, std::uint32_t value) override;
  void copy_now(void* to, const void* from, std::int64_t bytes) override;
  void clear_now(void* memory, std::int64_t bytes) override;
  void synchronize(kernels::Stream& stream) override;

  void begin_recording(kernels::Stream& origin) override;
  std::unique_ptr<kernels::Recording> end_recording(kernels::Stream& origin) override;
  void abandon_recording(kernels::Stream& origin) noexcept override;
  void replay(kernels::Stream& stream, kernels::Recording& recording) override;

  /// The number of replays of recordings on this device.
  [[nodiscard]] int replays() const { return replays_; }

 private:
  ThreadOrder order_;
  std::shared_ptr<std::int64_t> free_bytes_;  ///< shared with all memory that was allocated
  std::int64_t memory_bytes_;
  std::uint64_t delays_;
  int replays_ = 0;
};

}  // namespace strata::cuda
