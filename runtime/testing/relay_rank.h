// A rank that runs a relay (small_model.h) on a simulated device: for tests of the device executor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/staged/staged_communicator.h"
#include "core/error.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "runtime/execute/executor.h"
#include "runtime/passes/order.h"
#include "runtime/program/lower.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {

inline constexpr int kLinks = 4;
inline constexpr std::int64_t kElements = 24 * 64;

/// Collectives that run on a stream, as NCCL's do, on rank 0 of several that are not there: they
/// only copy.
class StreamCommunicator final : public comm::Communicator {
 public:
  explicit StreamCommunicator(kernels::Device& device, int size = 1)
      : device_(device), size_(size) {}
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::string_view backend() const override { return "stream"; }
  [[nodiscard]] bool runs_on_host() const override { return false; }
  void register_arena(const comm::ArenaRegion&) override {}
  void unregister_arena(const std::byte*) override {}
  [[nodiscard]] comm::Exchange exchange() const override { return comm::Exchange::none; }
  void execute(kernels::Stream& stream, const comm::Collective& collective, const std::byte* input,
               std::byte* output, std::span<std::byte>) override {
    if (hold) static_cast<cuda::SimulatedStream&>(stream).enqueue(hold);
    device_.copy(stream, output, input, operand_bytes(collective, 0).output);
  }
  void abort(const std::string&, ExitCode) noexcept override {}
  void close() override {}
  bool all_have_recorded(bool mine) override { return peers_say ? peers_say(mine) : mine; }

  std::function<void()> hold;           ///< what each collective does before it copies
  std::function<bool(bool)> peers_say;  ///< what all ranks agree on, by what this one says

 private:
  kernels::Device& device_;
  int size_;
};

/// Says which call of a recording fails.
enum class RecordingFault : std::uint8_t { none, begin, end, mark };

/// Fails as CUDA does if work cannot be captured, or the captured graph cannot be made executable.
class FaultyRecorder final : public cuda::SimulatedDevice {
 public:
  FaultyRecorder(cuda::ThreadOrder order, std::uint64_t delays, RecordingFault fault)
      : cuda::SimulatedDevice(order, std::int64_t{1} << 30, delays), fault_(fault) {}
  void begin_recording(kernels::Stream& origin) override {
    ++begun;
    if (fault_ == RecordingFault::begin) throw HostError("cudaStreamBeginCapture failed");
    cuda::SimulatedDevice::begin_recording(origin);
  }
  std::unique_ptr<kernels::Recording> end_recording(kernels::Stream& origin) override {
    auto recording = cuda::SimulatedDevice::end_recording(origin);
    if (fault_ == RecordingFault::end) throw HostError("cudaGraphInstantiate failed");
    return recording;
  }
  void mark(kernels::Stream& stream, std::uint32_t* word, std::uint32_t value) override {
    if (fault_ == RecordingFault::mark) throw HostError("cuMemsetD32Async failed");
    cuda::SimulatedDevice::mark(stream, word, value);
  }
  int begun = 0;

 private:
  RecordingFault fault_;
};

/// Owns all that the rank needs.
class RelayRank {
 public:
  struct Options {
    Recordings recordings = Recordings::on;
    std::uint64_t delays = 0;
    Observer* observer = nullptr;
    cuda::ThreadOrder order = cuda::ThreadOrder::forward;
    RecordingFault fault = RecordingFault::none;
    int absent_peers = 0;
  };

  /// A null `host` means a world of one whose collectives run on the stream, or of this rank and
  /// absent ones.
  RelayRank(comm::Communicator* host, const Options& options)
      : device_(options.order, options.delays, options.fault) {
    if (host != nullptr)
      communicator_ = std::make_unique<comm::StagedCommunicator>(*host, device_);
    else
      communicator_ = std::make_unique<StreamCommunicator>(device_, 1 + options.absent_peers);
    Graph graph = relay(kLinks, kElements, communicator_->size());
    TransferLimits limits;
    limits.prefetch_elements = 2 * kElements;
    hoist_gathers(graph, limits);
    layout_.add_all(graph);
    Program program = lower(std::move(graph), layout_,
                            {"relay", machine::typical_machine(device_.capabilities()),
                             comm::MeshSeat::of(communicator_->seat())});
    arena_ = Arena(device_, kernels::MemoryKind::device, program.arena_bytes[0]);
    communicator_->register_arena({arena_.base(), arena_.bytes(), -1});
    fill("start", 0.1f);
    for (int i = 0; i < kLinks; ++i)
      fill("shard." + std::to_string(i), 1.0f / static_cast<float>(3 + i));
    ExecutorParts parts;
    parts.arenas[static_cast<int>(Tier::device)] = &arena_;
    parts.communicators.add(comm::MeshAxis::data, *communicator_);
    if (options.observer != nullptr) parts.observers.push_back(options.observer);
    executor_ = make_stream_executor(std::move(parts), device_, options.recordings);
    handle_ = executor_->load(std::move(program));
  }

  Executor& executor() { return *executor_; }
  FaultyRecorder& device() { return device_; }
  comm::Communicator& communicator() { return *communicator_; }
  void start(std::int64_t step = 0) { executor_->start(handle_, step); }
  /// A test may read the memory: a simulated device's memory is the host's.
  [[nodiscard]] std::span<float> values(const std::string& name) const {
    const PersistentValue& value = layout_.find(name);
    return {reinterpret_cast<float*>(arena_.base() + value.offset_bytes),
            static_cast<std::size_t>(value.type.shape.elements())};
  }
  [[nodiscard]] std::vector<float> results() const {
    std::vector<float> all;
    for (const char* name : {"start", "result"})
      for (float value : values(name)) all.push_back(value);
    return all;
  }

 private:
  void fill(const std::string& name, float factor) {
    float x = factor * static_cast<float>(communicator_->rank() + 1);
    for (float& value : values(name)) value = x += 0.37f * factor;
  }

  FaultyRecorder device_;
  std::unique_ptr<comm::Communicator> communicator_;
  PersistentLayout layout_;
  Arena arena_;
  std::unique_ptr<Executor> executor_;
  int handle_ = 0;
};

}  // namespace strata::runtime
