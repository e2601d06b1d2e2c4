#include "kernels/cuda/device_trials.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/cuda/count_differences.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/product_workspace.h"

namespace strata::cuda {
namespace {

/// Device memory whose start has exactly the given alignment (at least, for kMostAlignment).
class Memory {
 public:
  Memory() = default;
  Memory(std::int64_t bytes, int alignment) : bytes_(bytes) {
    void* base = nullptr;
    const std::size_t asked = static_cast<std::size_t>(bytes) + kMostAlignment;
    const cudaError_t result = cudaMalloc(&base, asked);
    if (result == cudaErrorMemoryAllocation) refuse(asked);
    check(result, "cudaMalloc");
    base_.reset(static_cast<std::byte*>(base));
    data_ = base_.get() + (alignment < kMostAlignment ? alignment : 0);
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  [[noreturn]] static void refuse(std::size_t asked) {
    (void)cudaGetLastError();  // this error is not sticky; later calls must not see it
    std::size_t free = 0, total = 0;
    STRATA_CUDA(cudaMemGetInfo(&free, &total));
    throw OutOfMemory("device", asked, free, "see with nvidia-smi who holds memory of this GPU");
  }

  struct Free {
    void operator()(std::byte* memory) const noexcept { (void)cudaFree(memory); }
  };
  std::unique_ptr<std::byte, Free> base_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class Event {
 public:
  Event() { STRATA_CUDA(cudaEventCreate(&event_)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

void copy_on_device(CudaStream& stream, const Memory& from, const Memory& to) {
  STRATA_CUDA(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(from.bytes()),
                              cudaMemcpyDeviceToDevice, stream.get()));
}

/// Fills `memory` with a block of normal random numbers, repeated. The block has an odd length, so
/// that rows do not become equal.
void fill(CudaStream& stream, const Memory& memory, DType type, std::uint32_t seed) {
  constexpr std::int64_t kBlock = 1'000'003;
  const std::int64_t total = memory.bytes(), size = size_of(type);
  const std::int64_t count = std::min(kBlock, total / size);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  std::vector<std::byte> stored(static_cast<std::size_t>(count * size));
  kernels::convert_range(DType::f32, reinterpret_cast<const std::byte*>(values.data()), type,
                         stored.data(), count);
  STRATA_CUDA(cudaMemcpyAsync(memory.data(), stored.data(), stored.size(), cudaMemcpyHostToDevice,
                              stream.get()));
  for (std::int64_t filled = count * size; filled < total;) {
    const std::int64_t next = std::min(filled, total - filled);
    STRATA_CUDA(cudaMemcpyAsync(memory.data() + filled, memory.data(),
                                static_cast<std::size_t>(next), cudaMemcpyDeviceToDevice,
                                stream.get()));
    filled += next;
  }
  STRATA_CUDA(cudaStreamSynchronize(stream.get()));  // because `stored` goes out of scope
}

/// The bytes of a column-major matrix, gaps between columns included.
std::int64_t span_bytes(DType type, std::int64_t rows, std::int64_t cols, std::int64_t stride) {
  return ((cols - 1) * stride + rows) * size_of(type);
}

}  // namespace

struct DeviceTrials::Buffers {
  bool accumulate;
  Memory first, second, result, bias, workspace;
  Memory before;     ///< the result's content before a product is added to it
  Memory reference;  ///< the result of the first run
  Memory differences{sizeof(std::int64_t), kMostAlignment};

  explicit Buffers(const LibraryProduct& p)
      : accumulate(p.accumulate),
        first(span_bytes(p.operands, p.first_transposed ? p.k : p.m, p.first_transposed ? p.m : p.k,
                         p.first_stride),
              p.first_alignment),
        second(span_bytes(p.operands, p.second_transposed ? p.n : p.k,
                          p.second_transposed ? p.k : p.n, p.second_stride),
               p.second_alignment),
        result(span_bytes(p.result, p.m, p.n, p.result_stride), p.result_alignment),
        workspace(library_bytes(p.m * p.n), kMostAlignment),
        reference(result.bytes(), p.result_alignment) {
    if (p.bias) bias = Memory(p.m * size_of(*p.bias), p.bias_alignment);
    if (p.accumulate) before = Memory(result.bytes(), p.result_alignment);
  }

  [[nodiscard]] ProductOperands operands() const {
    return {.first = first.data(),
            .second = second.data(),
            .result = result.data(),
            .bias = bias.data(),
            .workspace = {workspace.data(), static_cast<std::size_t>(workspace.bytes())}};
  }
};

DeviceTrials::DeviceTrials() = default;
DeviceTrials::~DeviceTrials() = default;

void DeviceTrials::prepare(const LibraryProduct& product) {
  buffers_.reset();
  buffers_ = std::make_unique<Buffers>(product);
  fill(stream_, buffers_->first, product.operands, 1);
  fill(stream_, buffers_->second, product.operands, 2);
  fill(stream_, buffers_->result, product.result, 3);
  if (product.bias) fill(stream_, buffers_->bias, *product.bias, 4);
  if (product.accumulate) copy_on_device(stream_, buffers_->result, buffers_->before);
}

/// Runs the product once. If it accumulates, the result first gets its former content back.
bool DeviceTrials::run_once(const Enqueue& enqueue) {
  if (buffers_->accumulate) copy_on_device(stream_, buffers_->before, buffers_->result);
  return enqueue(stream_.get(), buffers_->operands());
}

bool DeviceTrials::same_again(const Enqueue& enqueue) {
  const Memory &result = buffers_->result, &reference = buffers_->reference;
  auto* count = reinterpret_cast<std::int64_t*>(buffers_->differences.data());
  STRATA_CUDA(cudaMemsetAsync(count, 0, sizeof *count, stream_.get()));
  if (!run_once(enqueue)) return false;
  count_differences(stream_, reinterpret_cast<const std::uint16_t*>(result.data()),
                    reinterpret_cast<const std::uint16_t*>(reference.data()), result.bytes() / 2,
                    count);
  std::int64_t found = 0;
  STRATA_CUDA(cudaMemcpyAsync(&found, count, sizeof found, cudaMemcpyDeviceToHost, stream_.get()));
  STRATA_CUDA(cudaStreamSynchronize(stream_.get()));
  return found == 0;
}

/// Measures the time of one product when `products` of them run one after another.
double DeviceTrials::microseconds(const Enqueue& enqueue, int products) {
  const Event begin, end;
  STRATA_CUDA(cudaEventRecord(begin.get(), stream_.get()));
  for (int i = 0; i < products; ++i) enqueue(stream_.get(), buffers_->operands());
  STRATA_CUDA(cudaEventRecord(end.get(), stream_.get()));
  STRATA_CUDA(cudaEventSynchronize(end.get()));
  float milliseconds = 0;
  STRATA_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  return 1000.0 * static_cast<double>(milliseconds) / products;
}

TrialOutcome DeviceTrials::run(const Enqueue& enqueue) {
  if (!run_once(enqueue)) return {};
  copy_on_device(stream_, buffers_->result, buffers_->reference);
  for (int i = 0; i < kComparedRuns; ++i)
    if (!same_again(enqueue)) return {.ran = true};
  const double one = microseconds(enqueue, 1);
  const int products = static_cast<int>(std::clamp(1000.0 / std::max(one, 1.0), 1.0, 100.0));
  std::array<double, kTimedStretches> times{};
  for (double& time : times) time = microseconds(enqueue, products);
  std::sort(times.begin(), times.end());
  return {.ran = true, .same_bits = true, .microseconds = times[kTimedStretches / 2]};
}

}  // namespace strata::cuda
