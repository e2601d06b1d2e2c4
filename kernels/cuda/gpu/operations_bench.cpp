// Times each operation on a GPU at the shapes of Qwen2.5-3B (16 x 1024 tokens, bf16) and sets it
// beside the rate at which the same GPU copies memory. One JSON object per operation.
//
//   gpu_operations_bench            on the first GPU; ends with 77 where there is none. What
//   libraries
//                                   run is timed by our own kernels, too
//   gpu_operations_bench --list     what would be timed, and which of it has no kernel yet
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/open_device.h"
#include "kernels/device.h"
#include "kernels/float16.h"
#include "kernels/operation.h"
#include "kernels/step_state.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::Device;
using kernels::Memory;
using kernels::Operation;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorType;
using kernels::Types;

constexpr std::int64_t kTokens = 16384, kSequence = 1024, kSamples = kTokens / kSequence;
constexpr std::int64_t kHidden = 2048, kInner = 11008, kVocabulary = 151936;
constexpr std::int64_t kHeads = 16, kKvHeads = 2, kHeadSize = 128;
constexpr std::int64_t kPacked = (kHeads + 2 * kKvHeads) * kHeadSize;  // q | k | v
constexpr std::int64_t kState = std::int64_t{1} << 27;  // elements of optimizer state
constexpr DType kType = DType::bf16;

/// One operation to time. Integer inputs are drawn from [0, `below`).
struct Case {
  std::string label;
  std::string_view operation;
  Types inputs;
  Attributes attributes = {};
  std::int64_t below = 1;
  bool in_place = false;  ///< where the operation offers it; else outputs have their own memory
};

double number(DType type) { return static_cast<double>(type); }

std::vector<Case> cases() {
  const TensorType x(kType, {kTokens, kHidden}), wide(kType, {kTokens, 2 * kInner}),
      inner(kType, {kTokens, kInner}), vector(kType, {kHidden}), stats(DType::f32, {kTokens, 2});
  const TensorType q(kType, {kTokens, kHeads, kHeadSize}, kPacked),
      k(kType, {kTokens, kKvHeads, kHeadSize}, kPacked), o(kType, {kTokens, kHeads, kHeadSize}),
      lse(DType::f32, {kSamples, kHeads, kSequence});
  const TensorType ids(DType::i32, {kTokens}), table(kType, {kVocabulary, kHidden});
  const auto weight = [](std::int64_t out, std::int64_t in) {
    return TensorType(kType, {out, in});
  };
  const TensorType state(DType::f32, {kState}), half(kType, {kState}),
      control(DType::u8, {static_cast<std::int64_t>(sizeof(kernels::StepControl))}),
      rng(DType::i64, {2}), remainder(DType::i16, {kState}), code(DType::u8, {kState}),
      scale(DType::f32, {kState / 128}), word(DType::i64, {kernels::AgreedWord::kWords});
  const Attributes sequence{{"sequence", kSequence}};
  const Attributes attention{{"sequence", kSequence},
                             {"scale", 1 / std::sqrt(static_cast<double>(kHeadSize))}};
  const Attributes norm{{"eps", 1e-6}, {"rms", 1}, {"bias", 0}};
  const Attributes adam{{"beta1", 0.9},
                        {"beta2", 0.95},
                        {"eps", 1e-8},
                        {"weight_decay", 0.1},
                        {"decoupled", 1},
                        {"key", 1},
                        {"parameter_dtype", number(kType)}};
  return {
      {"residual_add", "residual_add", {x, x}, {{"p", 0}}},
      {"norm", "norm", {x, vector}, norm},
      {"residual_norm", "residual_norm", {x, x, vector}, norm},
      {"norm_backward", "norm_backward", {x, x, vector, stats, x}, norm},
      {"swiglu", "swiglu", {wide}},
      {"swiglu_backward", "swiglu_backward", {inner, wide}},
      {"gelu", "gelu", {inner}, {{"tanh", 1}}},
      {"gelu_backward", "gelu_backward", {inner, inner}, {{"tanh", 1}}},
      {"rope", "rope", {q, {DType::f32, {kSequence, kHeadSize}}}, sequence},
      {"embedding",
       "embedding",
       {ids, table},
       {{"dtype", number(kType)}, {"sequence", kSequence}},
       kVocabulary},
      {"embedding_backward", "embedding_backward", {ids, x}, {{"rows", kVocabulary}}, kVocabulary},
      {"accumulate to fp32",
       "accumulate",
       {{DType::f32, {kHidden, kInner}}, weight(kHidden, kInner)},
       {},
       1,
       true},
      {"convert fp32 to bf16",
       "convert",
       {{DType::f32, {kTokens, kHidden}}},
       {{"dtype", number(kType)}}},
      {"copy", "copy", {x}},
      {"norm_squares", "norm_squares", {word, half}, {}, 1, true},
      {"adamw, fp32 master", "adamw", {state, state, state, half, control}, adam, 1, true},
      {"adamw, fp32 master, bf16 moments",
       "adamw",
       {state, half, half, half, control, rng},
       adam,
       1,
       true},
      {"adamw, packed master",
       "adamw_packed",
       {half, remainder, state, state, half, control},
       adam,
       1,
       true},
      {"adamw, 8-bit moments",
       "adamw_8bit",
       {state, code, code, scale, scale, half, control},
       adam,
       1,
       true},
      {"lion, fp32 master", "lion", {state, state, half, control}, adam, 1, true},
      {"adamw, bf16 state", "adamw_bf16", {half, half, half, half, control, rng}, adam, 1, true},
      {"attention", "attention", {q, k, k}, attention},
      {"attention_backward", "attention_backward", {o, q, k, k, o, lse}, attention},
      {"linear qkv", "linear", {x, weight(kPacked, kHidden)}},
      {"linear output", "linear", {x, weight(kHidden, kHidden)}},
      {"linear gate|up", "linear", {x, weight(2 * kInner, kHidden)}},
      {"linear down", "linear", {inner, weight(kHidden, kInner)}},
      {"linear gate|up backward, input",
       "linear_backward_input",
       {wide, weight(2 * kInner, kHidden)}},
      {"linear gate|up backward, weight", "linear_backward_weight", {wide, x}},
      {"head_loss",
       "head_loss",
       {x, table, ids, {DType::f32, {2}}},
       {{"vocabulary", kVocabulary}},
       kVocabulary},
  };
}

/// Random values of `type`, one megabyte or what the tensor needs. Zeros would flatter: multipliers
/// that do not switch let the clock rise.
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

/// Repeats the pattern over the tensor, doubling what is there.
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

/// Times `work`, after two runs that warm up. A time is that of one run in a stretch of a
/// millisecond: the few microseconds in which the device waits for the first launch do not count.
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

/// Bytes per second read and written by device-to-device copies of one gigabyte.
double measure_copies(Device& device, kernels::Stream& stream) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  const auto from = device.allocate(kernels::MemoryKind::device, kBytes);
  const auto to = device.allocate(kernels::MemoryKind::device, kBytes);
  const TensorType type(kType, {kBytes / size_of(kType)});
  fill(device, {type, from->base()}, random_values(type, 1, 1));
  const Timing timing =
      time_on(device, stream, [&] { device.copy(stream, to->base(), from->base(), kBytes); });
  return 2.0 * kBytes / (timing.median_us * 1e-6);
}

/// The operands of a case in device memory.
class Call {
 public:
  Call(Device& device, const Case& c, const Operation& operation, const Types& output_types)
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

/// Whether a library may run it.
bool in_libraries(const Case& c) {
  return c.operation.starts_with("attention") || c.operation.starts_with("linear") ||
         c.operation.starts_with("head_loss");
}

void measure(Device& device, kernels::Stream& stream, const Case& c, double copy_rate) {
  const kernels::Kernel kernel = device.kernels().find(c.operation);
  if (kernel == nullptr) return;
  const Operation& operation = kernels::find_operation(c.operation);
  const Types outputs = operation.infer(c.inputs, c.attributes);
  const kernels::Cost cost = operation.cost(c.inputs, outputs, c.attributes);
  try {
    const Call call(device, c, operation, outputs);
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

/// Needs no device: every case's operands must be what its operation takes.
void list() {
  for (const Case& c : cases()) {
    const Operation& operation = kernels::find_operation(c.operation);
    const kernels::Cost cost =
        operation.cost(c.inputs, operation.infer(c.inputs, c.attributes), c.attributes);
    std::printf("%-32s %8.3f GB %9.3f TFLOP%s\n", c.label.c_str(), cost.bytes / 1e9,
                cost.flops / 1e12,
                cuda_kernels().find(c.operation) == nullptr ? "  no CUDA kernel" : "");
  }
}

int measure_all() {
  constexpr int kSkipped = 77;
  if (const DeviceCount count = count_devices(); count.devices == 0) {
    std::printf("SKIPPED: no GPU: %s\n", count.why_none.c_str());
    return kSkipped;
  }
  const auto device = open_device(0);
  device->bind_thread();
  const auto stream = device->make_stream();
  const double copy_rate = measure_copies(*device, *stream);
  std::printf("{\"case\": \"device copy\", \"GB/s\": %.0f}\n", copy_rate / 1e9);
  for (const Case& c : cases()) measure(*device, *stream, c, copy_rate);
  const auto own = open_device(0, Libraries::left_out);
  const auto own_stream = own->make_stream();
  for (Case& c : cases()) {
    if (!in_libraries(c)) continue;
    c.label += ", own kernels";
    measure(*own, *own_stream, c, copy_rate);
  }
  return 0;
}

}  // namespace
}  // namespace strata::cuda

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
      strata::cuda::list();
      return 0;
    }
    return strata::cuda::measure_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
