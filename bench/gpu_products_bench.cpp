// Times the matrix products of models on a GPU, each by the fastest algorithm of its library, and
// one of 8192 x 8192 x 8192: which share of the peak these shapes can reach. Prints a JSON object
// per product.
//
//   gpu_products_bench MODEL:TOKENS...   on the first GPU; ends with 77 where there is none
//   gpu_products_bench --list MODEL:TOKENS...
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/head_chunks.h"
#include "kernels/cuda/open_device.h"
#include "kernels/cuda/testing/gpu/timed_case.h"
#include "train/models/hf_config.h"

namespace strata {
namespace {

using cuda::TimedCase;
using kernels::TensorType;

constexpr DType kType = DType::bf16;

/// Adds y = x W^T with `rows` rows, and both gradients.
void add_linear(const std::string& label, std::int64_t rows, std::int64_t out, std::int64_t in,
                std::vector<TimedCase>& cases) {
  const TensorType x(kType, {rows, in}), w(kType, {out, in}), y(kType, {rows, out});
  const std::string shape =
      " " + std::to_string(rows) + "x" + std::to_string(out) + "x" + std::to_string(in);
  cases.push_back({label + shape, "linear", {x, w}});
  cases.push_back({label + shape + ", gradient of x", "linear_backward_input", {y, w}});
  cases.push_back({label + shape + ", gradient of W", "linear_backward_weight", {y, x}});
}

/// Adds the products of a model given as "qwen2.5-3b:16384".
void add_model(const std::string& word, std::vector<TimedCase>& cases) {
  const std::size_t colon = word.find(':');
  const std::int64_t tokens =
      colon == std::string::npos ? 0 : std::atoll(word.substr(colon + 1).c_str());
  if (tokens <= 0) throw InvalidArgument("found '" + word + "', expected MODEL:TOKENS");
  const std::string name = word.substr(0, colon);
  const train::ModelConfig m = train::read_model_config(name);
  const std::int64_t packed = (m.heads + 2 * m.kv_heads) * m.head_size;
  add_linear(name + " qkv", tokens, packed, m.hidden, cases);
  add_linear(name + " output", tokens, m.hidden, m.heads * m.head_size, cases);
  const bool gated = m.family->mlp_matrices == 3;
  add_linear(name + " up", tokens, gated ? 2 * m.intermediate : m.intermediate, m.hidden, cases);
  add_linear(name + " down", tokens, m.hidden, m.intermediate, cases);
  const std::int64_t vocabulary = m.padded_vocabulary();
  const std::int64_t chunk = cuda::head_chunks(TensorType(kType, {tokens, m.hidden}),
                                               TensorType(kType, {vocabulary, m.hidden}))
                                 .chunk_rows;
  add_linear(name + " head", chunk, vocabulary, m.hidden, cases);
}

int run(const std::vector<std::string>& words) {
  constexpr int kSkipped = 77;
  const bool list = !words.empty() && words[0] == "--list";
  std::vector<TimedCase> cases;
  cases.push_back({"8192^3", "linear", {{kType, {8192, 8192}}, {kType, {8192, 8192}}}});
  for (std::size_t i = list ? 1 : 0; i < words.size(); ++i) add_model(words[i], cases);
  if (list) {
    for (const TimedCase& timed : cases) std::printf("%s\n", timed.label.c_str());
    return 0;
  }
  if (const cuda::DeviceCount count = cuda::count_devices(); count.devices == 0) {
    std::printf("SKIPPED: no GPU: %s\n", count.why_none.c_str());
    return kSkipped;
  }
  const auto device = cuda::open_device(0);
  device->bind_thread();
  const auto stream = device->make_stream();
  const double copy_rate = cuda::measure_copies(*device, *stream);
  for (const TimedCase& timed : cases) cuda::measure(*device, *stream, timed, copy_rate);
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  try {
    return strata::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
