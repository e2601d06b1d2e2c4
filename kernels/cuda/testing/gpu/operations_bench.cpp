// Times each operation on a GPU at the shapes of Qwen2.5-3B (16 x 1024 tokens, bf16; attention also
// over sequences of 4096 and 16384), and compares it with the rate at which the same GPU copies
// memory. Prints one JSON object per operation.
//
//   gpu_operations_bench            runs on the first GPU; exits with 77 if there is none. Times
//                                   operations that libraries run with our own kernels, too
//   gpu_operations_bench --list     prints what would be timed, and what has no kernel yet
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/open_device.h"
#include "kernels/cuda/testing/gpu/timed_case.h"
#include "kernels/device/device.h"
#include "kernels/ops/operation.h"
#include "kernels/ops/step_state.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::Device;
using kernels::Operation;
using kernels::TensorType;
using kernels::Types;

constexpr std::int64_t kTokens = 16384, kSequence = 1024;
constexpr std::int64_t kHidden = 2048, kInner = 11008, kVocabulary = 151936;
constexpr std::int64_t kHeads = 16, kKvHeads = 2, kHeadSize = 128;
constexpr std::int64_t kPacked = (kHeads + 2 * kKvHeads) * kHeadSize;  // q | k | v
constexpr std::int64_t kState = std::int64_t{1} << 27;  // elements of optimizer state
constexpr DType kType = DType::bf16;

double number(DType type) { return static_cast<double>(type); }

std::vector<TimedCase> cases() {
  const TensorType x(kType, {kTokens, kHidden}), wide(kType, {kTokens, 2 * kInner}),
      inner(kType, {kTokens, kInner}), vector(kType, {kHidden}), stats(DType::f32, {kTokens, 2});
  const TensorType q(kType, {kTokens, kHeads, kHeadSize}, kPacked),
      k(kType, {kTokens, kKvHeads, kHeadSize}, kPacked), o(kType, {kTokens, kHeads, kHeadSize});
  const TensorType ids(DType::i32, {kTokens}), table(kType, {kVocabulary, kHidden});
  const auto weight = [](std::int64_t out, std::int64_t in) {
    return TensorType(kType, {out, in});
  };
  const TensorType state(DType::f32, {kState}), half(kType, {kState}),
      control(DType::u8, {static_cast<std::int64_t>(sizeof(kernels::StepControl))}),
      rng(DType::i64, {2}), remainder(DType::i16, {kState}), code(DType::u8, {kState}),
      scale(DType::f32, {kState / 128}), word(DType::i64, {kernels::AgreedWord::kWords});
  const Attributes sequence{{"sequence", kSequence}};
  const Attributes norm{{"eps", 1e-6}, {"rms", 1}, {"bias", 0}};
  const Attributes adam{{"beta1", 0.9},
                        {"beta2", 0.95},
                        {"eps", 1e-8},
                        {"weight_decay", 0.1},
                        {"decoupled", 1},
                        {"key", 1},
                        {"parameter_dtype", number(kType)}};
  std::vector<TimedCase> all = {
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
  for (const std::int64_t length : {1024, 4096, 16384}) {
    const TensorType lse(DType::f32, {kTokens / length, kHeads, length});
    const Attributes attention{{"sequence", static_cast<double>(length)},
                               {"scale", 1 / std::sqrt(static_cast<double>(kHeadSize))}};
    const std::string over = " over " + std::to_string(length);
    all.push_back({"attention" + over, "attention", {q, k, k}, attention});
    all.push_back(
        {"attention_backward" + over, "attention_backward", {o, q, k, k, o, lse}, attention});
  }
  return all;
}

/// True if a library may run the operation.
bool in_libraries(const TimedCase& c) {
  return c.operation.starts_with("attention") || c.operation.starts_with("linear") ||
         c.operation.starts_with("head_loss");
}

/// Lists the cases, without a device. Fails if an operation does not take the operands of its case.
void list() {
  for (const TimedCase& c : cases()) {
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
  for (const TimedCase& c : cases()) measure(*device, *stream, c, copy_rate);
  const auto own = open_device(0, Libraries::left_out);
  const auto own_stream = own->make_stream();
  for (TimedCase& c : cases()) {
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
