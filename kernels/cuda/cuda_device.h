// A GPU as a kernels::Device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/cublas_lt.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/open_device.h"
#include "kernels/cuda/product_library.h"
#include "kernels/device/device.h"

namespace strata::cuda {

/// One GPU of this process. It uses CUDA's primary context, as other libraries of the process do.
class CudaDevice final : public kernels::Device {
 public:
  /// Throws HostError as open_device does.
  CudaDevice(int ordinal, Libraries libraries, Tf32 tf32);
  ~CudaDevice() override;

  [[nodiscard]] std::string_view backend() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::string name() const override { return properties_.name; }
  [[nodiscard]] std::string identity() const override;
  [[nodiscard]] std::string pci_address() const override;
  [[nodiscard]] kernels::DeviceCapabilities capabilities() const override;
  [[nodiscard]] kernels::DeviceMemoryFacts memory() const override;
  [[nodiscard]] const kernels::KernelTable& kernels() const override;

  void choose(std::span<const kernels::PlannedCall> calls, kernels::ChooseBy by) override;
  [[nodiscard]] std::string choices() const override;
  void use_choices(std::string_view text, const std::string& file) override;
  [[nodiscard]] std::vector<std::string> notes() const override;

  void bind_thread() override { make_current(); }
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
  void begin_range(const char* name) override;
  void end_range() override;
  void synchronize(kernels::Stream& stream) override;

  void begin_recording(kernels::Stream& origin) override;
  std::unique_ptr<kernels::Recording> end_recording(kernels::Stream& origin) override;
  void abandon_recording(kernels::Stream& origin) noexcept override;
  void replay(kernels::Stream& stream, kernels::Recording& recording) override;

 private:
  /// A function of the driver: cudart sets bytes only. Its result has the values of cudaError_t.
  using MemsetWords = cudaError_t (*)(std::uintptr_t word, unsigned value, std::size_t words,
                                      cudaStream_t stream);

  /// Makes this GPU the calling thread's current device, on which CUDA calls then act.
  void make_current() const;

  void open_libraries();
  [[nodiscard]] int architecture() const { return 10 * properties_.major + properties_.minor; }
  void note(const std::string& text);

  int ordinal_;
  Tf32 tf32_;
  cudaDeviceProp properties_{};
  MemsetWords memset_words_ = nullptr;  ///< cuMemsetD32Async; null: the driver has none
  std::optional<CublasLt> cublas_lt_;
  std::unique_ptr<ProductLibrary> products_;   ///< null: our own kernels multiply
  std::unique_ptr<CudnnAttention> attention_;  ///< null: our own kernels attend
  std::string cudnn_path_;
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;  ///< under mutex_
};

}  // namespace strata::cuda
