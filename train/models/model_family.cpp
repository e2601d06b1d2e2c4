#include "train/models/model_family.h"

#include <algorithm>

#include "train/models/gpt2.h"
#include "train/models/llama.h"

namespace strata::train {
namespace {

constexpr ModelFamily kFamilies[] = {
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .build = build_gpt2,
     .read = read_gpt2,
     .write = write_gpt2,
     .prefix = "transformer.",
     .embedding = "transformer.wte.weight",
     .learned_positions = true},
    llama_family<LlamaKind{.bias_key = true, .mlp_bias_key = true}>("llama", "LlamaForCausalLM"),
    llama_family<LlamaKind{
        .context = 32768, .intermediate = 22016, .kv_heads = 32, .qkv_bias = true}>(
        "qwen2", "Qwen2ForCausalLM"),
    llama_family<LlamaKind{.context = 32768,
                           .intermediate = 22016,
                           .kv_heads = 32,
                           .head_size = 128,
                           .bias_key = true,
                           .head_norms = true}>("qwen3", "Qwen3ForCausalLM"),
    llama_family<LlamaKind{
        .context = 131072, .intermediate = 14336, .kv_heads = 8, .sliding_window = 4096}>(
        "mistral", "MistralForCausalLM"),
};

}  // namespace

std::span<const ModelFamily> built_in_families() { return kFamilies; }

const ModelFamily* find_family(std::string_view model_type, std::span<const ModelFamily> own) {
  for (const std::span<const ModelFamily> rows : {own, built_in_families()}) {
    const auto row = std::ranges::find(rows, model_type, &ModelFamily::model_type);
    if (row != rows.end()) return &*row;
  }
  return nullptr;
}

}  // namespace strata::train
