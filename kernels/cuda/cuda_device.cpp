#include "kernels/cuda/cuda_device.h"

#include <fmt/core.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/device_trials.h"
#include "kernels/cuda/operation_products.h"
#include "kernels/cuda/pinned_memory.h"
#include "kernels/cuda/probe.h"

namespace strata::cuda {
namespace {

using kernels::EventUse;
using kernels::MemoryKind;

class CudaMemory final : public kernels::Memory {
 public:
  CudaMemory(MemoryKind kind, std::int64_t bytes) : kind_(kind), bytes_(bytes) {
    void* base = nullptr;
    const cudaError_t result = kind == MemoryKind::device
                                   ? cudaMalloc(&base, static_cast<std::size_t>(bytes))
                                   : pinned_.take(bytes);
    base_ = kind == MemoryKind::device ? static_cast<std::byte*>(base) : pinned_.base();
    if (result == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();  // this error is not sticky; later calls must not see it
      refuse();
    }
    check(result, kind == MemoryKind::device ? "cudaMalloc" : "cudaHostAlloc");
  }
  ~CudaMemory() override {
    // An error here comes from earlier work, and whoever waited for that work got it.
    if (kind_ == MemoryKind::device) (void)cudaFree(base_);
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  [[nodiscard]] std::byte* base() const override { return base_; }
  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }

 private:
  [[noreturn]] void refuse() const {
    if (kind_ == MemoryKind::pinned)
      throw OutOfMemory("pinned", static_cast<std::uint64_t>(bytes_), 0,
                        "the operating system refused to lock it; raise the memory limit of the "
                        "container or use a smaller micro-batch");
    std::size_t free = 0, total = 0;
    STRATA_CUDA(cudaMemGetInfo(&free, &total));
    throw OutOfMemory("device", static_cast<std::uint64_t>(bytes_), free,
                      "use a smaller micro-batch, a higher ZeRO stage, activation checkpointing or "
                      "more ranks, and see with nvidia-smi who else holds memory of this GPU");
  }

  MemoryKind kind_;
  PinnedMemory pinned_;
  std::byte* base_ = nullptr;
  std::int64_t bytes_;
};

class CudaEvent final : public kernels::Event {
 public:
  explicit CudaEvent(EventUse use) {
    unsigned flags = cudaEventDisableTiming;
    if (use == EventUse::host) flags |= cudaEventBlockingSync;
    if (use == EventUse::timing) flags = cudaEventBlockingSync;
    STRATA_CUDA(cudaEventCreateWithFlags(&event_, flags));
  }
  ~CudaEvent() override { (void)cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaGraph final : public kernels::Recording {
 public:
  explicit CudaGraph(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaGraph() override { (void)cudaGraphExecDestroy(graph_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  [[nodiscard]] cudaGraphExec_t get() const { return graph_; }

 private:
  cudaGraphExec_t graph_;
};

const CudaEvent& cuda(const kernels::Event& event) { return static_cast<const CudaEvent&>(event); }

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Returns null if the driver does not know the function.
void* driver_function(const char* name) {
  constexpr unsigned kVersion = 12000;  // of CUDA, whose interface is meant
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  STRATA_CUDA(
      cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &found));
  return found == cudaDriverEntryPointSuccess ? function : nullptr;
}

}  // namespace

DeviceCount count_devices() {
  DeviceCount count;
  const cudaError_t result = cudaGetDeviceCount(&count.devices);
  if (result == cudaSuccess && count.devices > 0) return count;
  (void)cudaGetLastError();
  count.devices = 0;
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  if (result == cudaErrorInsufficientDriver || driver == 0) {
    count.why_none = driver == 0 ? "no NVIDIA driver is installed (libcuda.so.1 was not found)"
                                 : fmt::format(
                                       "the NVIDIA driver serves CUDA {}, this build needs "
                                       "CUDA {}; update the driver",
                                       version_text(driver), version_text(CUDART_VERSION));
  } else if (result == cudaErrorNoDevice || result == cudaSuccess) {
    count.why_none =
        "the NVIDIA driver shows this process no GPU; look at nvidia-smi and at "
        "CUDA_VISIBLE_DEVICES";
  } else {
    count.why_none = fmt::format("cudaGetDeviceCount failed: {} ({})", cudaGetErrorName(result),
                                 cudaGetErrorString(result));
  }
  return count;
}

std::unique_ptr<kernels::Device> open_device(int ordinal, Libraries libraries, Tf32 tf32) {
  const DeviceCount count = count_devices();
  if (count.devices == 0) throw HostError("no CUDA device: " + count.why_none);
  if (ordinal < 0 || ordinal >= count.devices)
    throw HostError(fmt::format(
        "CUDA device {} was asked for, but this process sees {}; look at CUDA_VISIBLE_DEVICES",
        ordinal, count.devices));
  return std::make_unique<CudaDevice>(ordinal, libraries, tf32);
}

CudaDevice::CudaDevice(int ordinal, Libraries libraries, Tf32 tf32)
    : ordinal_(ordinal), tf32_(tf32) {
  make_current();
  STRATA_CUDA(cudaGetDeviceProperties(&properties_, ordinal_));
  if (!probe_runs())
    throw HostError(fmt::format(
        "{0} is of architecture sm_{1}{2}, this binary holds code for {3}; configure with "
        "-DSTRATA_CUDA_ARCHITECTURES={1}{2}",
        properties_.name, properties_.major, properties_.minor, STRATA_CUDA_ARCHITECTURES));
  memset_words_ = reinterpret_cast<MemsetWords>(driver_function("cuMemsetD32Async"));
  if (libraries == Libraries::used) open_libraries();
}

CudaDevice::~CudaDevice() = default;

void CudaDevice::open_libraries() {
  try {
    cublas_lt_.emplace(library_environment());
    products_ = std::make_unique<ProductLibrary>(
        cublas_lt_->functions(),
        ProductLibrary::Settings{.gpu = properties_.name,
                                 .tf32 = tf32_ == Tf32::allowed,
                                 .report = [this](const std::string& text) { note(text); }});
  } catch (const HostError& error) {
    cublas_lt_.reset();
    note(std::string("matrix products run on Strata's own, slower kernels: ") + error.what());
  }
  try {
    const LibraryEnvironment environment = library_environment();
    const auto search = [&](const std::string& name) {
      return cuda_library_search({name}, environment,
                                 "install nvidia-cudnn-cu13, or name its folder in "
                                 "STRATA_CUDA_PATH");
    };
    LibrarySearch cudnn = search("libcudnn.so.9");
    cudnn.refuse = why_not_cudnn;  // distributions often have an older one than wheels beside it
    const std::string cudart = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
    const CudnnFiles files{DynamicLibrary::open(cudnn).path(),
                           DynamicLibrary::open(search(cudart)).path()};
    attention_ = std::make_unique<CudnnAttention>(files, architecture(),
                                                  [this](const std::string& text) { note(text); });
    cudnn_path_ = files.cudnn;
  } catch (const HostError& error) {
    note(std::string("attention runs on Strata's own, slower kernels: ") + error.what());
  }
}

void CudaDevice::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  notes_.push_back(text);
}

std::vector<std::string> CudaDevice::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

void CudaDevice::choose(std::span<const kernels::PlannedCall> calls, kernels::ChooseBy by) {
  if (!products_) return;
  make_current();
  std::vector<MatrixProduct> products;
  for (const kernels::PlannedCall& planned : calls)
    for (const MatrixProduct& product : products_of(planned.operation, planned.call))
      products.push_back(product);
  if (by == kernels::ChooseBy::proposal) return products_->choose_first(products);
  DeviceTrials trials;
  products_->tune(products, trials);
}

std::string CudaDevice::choices() const { return products_ ? products_->save() : ""; }

void CudaDevice::use_choices(std::string_view text, const std::string& file) {
  if (products_ && !text.empty()) products_->load(text, file);
}

void CudaDevice::make_current() const { STRATA_CUDA(cudaSetDevice(ordinal_)); }

std::string CudaDevice::description() const {
  int driver = 0;
  STRATA_CUDA(cudaDriverGetVersion(&driver));
  std::string all = fmt::format(
      "{} (sm_{}{}, {} SMs, {:.1f} GiB), driver for CUDA {}", properties_.name, properties_.major,
      properties_.minor, properties_.multiProcessorCount,
      static_cast<double>(properties_.totalGlobalMem) / (1 << 30), version_text(driver));
  if (cublas_lt_)
    all += fmt::format(", cuBLASLt {} ({})", cublas_lt_->version(), cublas_lt_->path());
  if (attention_) all += fmt::format(", cuDNN {} ({})", attention_->version(), cudnn_path_);
  return all;
}

std::string CudaDevice::pci_address() const {
  char bus[32] = {};
  STRATA_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal_));
  std::string address = bus;
  for (char& c : address)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return address;
}

/// Includes the host's boot id, because PCI addresses repeat from host to host.
std::string CudaDevice::identity() const {
  std::string machine;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), machine);
  return "GPU " + pci_address() + " of the machine " + machine;
}

kernels::DeviceCapabilities CudaDevice::capabilities() const {
  kernels::DeviceCapabilities capabilities;
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  capabilities.architecture = architecture();
  capabilities.cudnn = attention_ != nullptr;
  return capabilities;
}

kernels::DeviceMemoryFacts CudaDevice::memory() const {
  make_current();
  std::size_t free = 0, total = 0;
  STRATA_CUDA(cudaMemGetInfo(&free, &total));
  return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

const kernels::KernelTable& CudaDevice::kernels() const { return cuda_kernels(); }

std::unique_ptr<kernels::Memory> CudaDevice::allocate(MemoryKind kind, std::int64_t bytes) {
  STRATA_CHECK(bytes > 0, bytes);
  make_current();
  return std::make_unique<CudaMemory>(kind, bytes);
}

std::unique_ptr<kernels::Stream> CudaDevice::make_stream() {
  make_current();
  auto stream = std::make_unique<CudaStream>();
  stream->use_products(products_.get());
  stream->use_attention(attention_.get());
  return stream;
}

std::unique_ptr<kernels::Event> CudaDevice::make_event(EventUse use) {
  make_current();
  return std::make_unique<CudaEvent>(use);
}

void CudaDevice::record(kernels::Stream& stream, kernels::Event& event) {
  make_current();
  STRATA_CUDA(cudaEventRecord(cuda(event).get(), cuda(stream).get()));
}

void CudaDevice::wait(kernels::Stream& stream, const kernels::Event& event) {
  make_current();
  STRATA_CUDA(cudaStreamWaitEvent(cuda(stream).get(), cuda(event).get(), 0));
}

bool CudaDevice::reached(const kernels::Event& event) {
  make_current();
  const cudaError_t result = cudaEventQuery(cuda(event).get());
  if (result == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check(result, "cudaEventQuery");
  return true;
}

void CudaDevice::wait_on_host(const kernels::Event& event) {
  make_current();
  STRATA_CUDA(cudaEventSynchronize(cuda(event).get()));
}

double CudaDevice::milliseconds(const kernels::Event& from, const kernels::Event& to) {
  make_current();
  float elapsed = 0;
  STRATA_CUDA(cudaEventElapsedTime(&elapsed, cuda(from).get(), cuda(to).get()));
  return elapsed;
}

void CudaDevice::copy(kernels::Stream& stream, void* to, const void* from, std::int64_t bytes) {
  make_current();
  STRATA_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                              cuda(stream).get()));
}

void CudaDevice::mark(kernels::Stream& stream, std::uint32_t* word, std::uint32_t value) {
  if (memset_words_ == nullptr) throw HostError("the NVIDIA driver has no cuMemsetD32Async");
  make_current();
  check(memset_words_(reinterpret_cast<std::uintptr_t>(word), value, 1, cuda(stream).get()),
        "cuMemsetD32Async");
}

void CudaDevice::copy_now(void* to, const void* from, std::int64_t bytes) {
  make_current();
  // The legacy default stream would wait for streams of other libraries.
  STRATA_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                              cudaStreamPerThread));
  STRATA_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
}

void CudaDevice::clear_now(void* memory, std::int64_t bytes) {
  make_current();
  STRATA_CUDA(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), cudaStreamPerThread));
  STRATA_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
}

void CudaDevice::begin_range(const char* name) { nvtxRangePushA(name); }

void CudaDevice::end_range() { nvtxRangePop(); }

void CudaDevice::synchronize(kernels::Stream& stream) {
  make_current();
  STRATA_CUDA(cudaStreamSynchronize(cuda(stream).get()));
}

void CudaDevice::begin_recording(kernels::Stream& origin) {
  make_current();
  // The thread-local mode lets other threads make any call meanwhile.
  STRATA_CUDA(cudaStreamBeginCapture(cuda(origin).get(), cudaStreamCaptureModeThreadLocal));
}

std::unique_ptr<kernels::Recording> CudaDevice::end_recording(kernels::Stream& origin) {
  make_current();
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(cuda(origin).get(), &graph),
        "cudaStreamEndCapture (--device-graphs false does without)");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(result, "cudaGraphInstantiate (--device-graphs false does without)");
  return std::make_unique<CudaGraph>(executable);
}

void CudaDevice::abandon_recording(kernels::Stream& origin) noexcept {
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(cuda(origin).get(), &graph);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();  // clears the error about an unjoined stream, which no longer matters
}

void CudaDevice::replay(kernels::Stream& stream, kernels::Recording& recording) {
  make_current();
  STRATA_CUDA(cudaGraphLaunch(static_cast<CudaGraph&>(recording).get(), cuda(stream).get()));
}

}  // namespace strata::cuda
