#include "kernels/cuda/testing/gpu/timed_case.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "kernels/math/float16.h"
#include "kernels/ops/step_state.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::Device;
using kernels::Memory;
using kernels::Operation;
using kernels::Tensor;
using kernels::TensorType;
using kernels::Types;

/// Random values of `type`, at most 512 Ki of them. Zeros would give too good times, because
/// multipliers that do not switch let the clock rise.
std::vector<std::byte> random_values(const TensorType& type, std::int64_t below, unsigned seed) {
  const std::int64_t count =
      std::min<std::int64_t>(type.span_bytes() / size_of(type.dtype), 1 << 19);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size_of(type.dtype)));
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 0.05F);
  std::uniform_int_distribution<std::int64_t> integer(0, std::max<std::int64_t>(below, 1) - 1);
  const auto put = [&](std::int64_t i, const auto& value) {
    std::memcpy(bytes.data() + i * size_of(type.dtype), &value, sizeof value);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (type.dtype == DType::f32)
      put(i, std::abs(normal(engine)));  // second moments must not be negative
    else if (type.dtype == DType::bf16)
      put(i, kernels::f32_to_bf16(normal(engine)));
    else if (type.dtype == DType::i32)
      put(i, static_cast<std::int32_t>(integer(engine)));
    else if (type.dtype == DType::i64)
      put(i, std::int64_t{0});
  }
  if (type.dtype == DType::u8) {
    kernels::StepControl control;
    control.apply = 1;
    control.learning_rate = 1e-4F;
    std::memcpy(bytes.data(), &control, sizeof control);
  }
  return bytes;
}

/// Fills the tensor with repetitions of `pattern`, and doubles the filled part with each copy.
void fill(Device& device, const Tensor& tensor, const std::vector<std::byte>& pattern) {
  const std::int64_t all = tensor.type.span_bytes();
  std::int64_t done = std::min<std::int64_t>(static_cast<std::int64_t>(pattern.size()), all);
  device.copy_now(tensor.data, pattern.data(), done);
  for (; done < all; done *= 2)
    device.copy_now(tensor.data + done, tensor.data, std::min(done, all - done));
}

struct Timing {
  double median_us = 0, best_us = 0;
  int stretches = 0;
};

/// Times `work`, after two runs that warm up. A time is that of one run in a stretch of about a
/// millisecond, in which the few microseconds until the first launch hardly count.
template <typename Work>
Timing time_on(Device& device, kernels::Stream& stream, const Work& work) {
  constexpr double kStretch_us = 1000, kEnough_us = 3e5;
  constexpr int kMostStretches = 50, kFewestStretches = 5;
  const auto begin = device.make_event(kernels::EventUse::timing);
  const auto end = device.make_event(kernels::EventUse::timing);
  const auto time = [&](int runs) {
    device.record(stream, *begin);
    for (int run = 0; run < runs; ++run) work();
    device.record(stream, *end);
    device.wait_on_host(*end);
    return 1000 * device.milliseconds(*begin, *end) / runs;
  };
  time(1);
  const int runs = static_cast<int>(std::clamp(kStretch_us / std::max(time(1), 1.0), 1.0, 100.0));
  std::vector<double> times;
  double total_us = 0;
  for (int stretch = 0;
       stretch < kMostStretches && (stretch < kFewestStretches || total_us < kEnough_us);
       ++stretch) {
    times.push_back(time(runs));
    total_us += times.back() * runs;
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), static_cast<int>(times.size())};
}

/// The operands of a case in device memory.
class Call {
 public:
  Call(Device& device, const TimedCase& c, const Operation& operation, const Types& output_types)
      : device_(device), attributes_(c.attributes) {
    unsigned seed = 0;
    for (const TensorType& type : c.inputs) {
      inputs_.push_back(allocate(type));
      fill(device, inputs_.back(), random_values(type, c.below, ++seed));
    }
    for (std::size_t i = 0; i < output_types.size(); ++i) {
      const auto alias = std::find_if(
          operation.aliases.begin(), operation.aliases.end(), [&](const kernels::Alias& a) {
            return c.in_place && static_cast<std::size_t>(a.output) == i;
          });
      outputs_.push_back(alias != operation.aliases.end()
                             ? inputs_[static_cast<std::size_t>(alias->input)]
                             : allocate(output_types[i]));
    }
    const std::int64_t bytes = kernels::workspace_bytes(operation, c.inputs, output_types,
                                                        attributes_, device.capabilities());
    if (bytes == 0) return;
    memory_.push_back(device.allocate(kernels::MemoryKind::device, bytes));
    workspace_ = {memory_.back()->base(), static_cast<std::size_t>(bytes)};
  }
  [[nodiscard]] kernels::PlannedCall planned(std::string_view operation) const {
    return {operation, {inputs_, outputs_, workspace_, attributes_}};
  }
  void run(kernels::Kernel kernel, kernels::Stream& stream) const {
    kernel(stream, {inputs_, outputs_, workspace_, attributes_});
  }

 private:
  Tensor allocate(const TensorType& type) {
    memory_.push_back(device_.allocate(kernels::MemoryKind::device, type.span_bytes()));
    return {type, memory_.back()->base()};
  }

  Device& device_;
  Attributes attributes_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<Tensor> inputs_, outputs_;
  std::span<std::byte> workspace_;
};

}  // namespace

double measure_copies(kernels::Device& device, kernels::Stream& stream) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  const auto from = device.allocate(kernels::MemoryKind::device, kBytes);
  const auto to = device.allocate(kernels::MemoryKind::device, kBytes);
  const TensorType type(DType::bf16, {kBytes / size_of(DType::bf16)});
  fill(device, {type, from->base()}, random_values(type, 1, 1));
  const Timing timing =
      time_on(device, stream, [&] { device.copy(stream, to->base(), from->base(), kBytes); });
  return 2.0 * kBytes / (timing.median_us * 1e-6);
}

void measure(kernels::Device& device, kernels::Stream& stream, const TimedCase& c,
             double copy_rate) {
  const kernels::Kernel kernel = device.kernels().find(c.operation);
  if (kernel == nullptr) return;
  const Operation& operation = kernels::find_operation(c.operation);
  const Types outputs = operation.infer(c.inputs, c.attributes);
  const kernels::Cost cost = operation.cost(c.inputs, outputs, c.attributes);
  try {
    const Call call(device, c, operation, outputs);
    const kernels::PlannedCall planned = call.planned(c.operation);
    device.choose({&planned, 1}, kernels::ChooseBy::measuring);
    const Timing timing = time_on(device, stream, [&] { call.run(kernel, stream); });
    const double seconds = timing.median_us * 1e-6;
    std::printf(
        "{\"case\": \"%s\", \"median_us\": %.1f, \"best_us\": %.1f, \"stretches\": %d, \"GB/s\": "
        "%.0f, "
        "\"share_of_copy\": %.3f, \"TFLOP/s\": %.2f}\n",
        c.label.c_str(), timing.median_us, timing.best_us, timing.stretches,
        cost.bytes / seconds / 1e9, cost.bytes / seconds / copy_rate, cost.flops / seconds / 1e12);
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", c.label.c_str(), error.what());
  }
  std::fflush(stdout);
}

}  // namespace strata::cuda
