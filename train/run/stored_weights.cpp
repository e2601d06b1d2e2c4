#include "train/run/stored_weights.h"

#include <fmt/core.h>
#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_set>

#include "core/error.h"
#include "core/round_up.h"
#include "train/engine/weights.h"
#include "train/files/model_files.h"

namespace strata::train {
namespace {

constexpr const char* kHead = "lm_head.weight";

/// Throws DataError unless this rank's share of a stored head equals the embedding it is tied to.
void refuse_other_head(const ModelFiles& files, const ModelConfig& config, const std::string& model,
                       const comm::Communicator& communicator, const Beat& beat) {
  const ModelFamily& family = *config.family;
  if (!config.tied_embeddings || family.embedding.empty() || files.find(kHead) == nullptr) return;
  const StoredTensor& head = files.at(kHead);
  const StoredTensor& embedding =
      files.at(stored_name(files, family, std::string(family.embedding)));
  const auto refuse = [&](const std::string& how) {
    throw DataError(head.file + ": config.json says tie_word_embeddings true, but tensor '" +
                    head.name + "' " + how + " than '" + embedding.name +
                    "'; set tie_word_embeddings to false in " + model +
                    "/config.json to train both, or remove the tensor");
  };
  if (head.shape != embedding.shape) refuse("has another shape");
  constexpr std::int64_t kAtOnce = 1 << 18;
  const std::int64_t share = divide_up(head.elements(), communicator.size());
  const std::int64_t end = std::min(head.elements(), (communicator.rank() + 1) * share);
  std::vector<float> a(static_cast<std::size_t>(std::min(kAtOnce, share))), b(a.size());
  for (std::int64_t first = communicator.rank() * share; first < end; first += kAtOnce) {
    const auto count = static_cast<std::size_t>(std::min(kAtOnce, end - first));
    const std::span<float> one(a.data(), count), other(b.data(), count);
    files.read(head.name, first, std::ssize(one), DType::f32, std::as_writable_bytes(one));
    files.read(embedding.name, first, std::ssize(one), DType::f32, std::as_writable_bytes(other));
    beat();
    if (!std::equal(one.begin(), one.end(), other.begin())) refuse("holds other values");
  }
}

/// True for buffers that older versions of transformers stored; each loader computes them anew.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

std::string describe_unused(const ModelFiles& files, const Engine& engine,
                            const ModelConfig& config) {
  std::unordered_set<std::string> used;
  for (const runtime::ParameterUnit& unit : engine.programs().units)
    for (const auto& segment : unit.segments)
      used.insert(stored_name(files, *config.family, segment.name));
  if (config.tied_embeddings) used.insert(kHead);
  constexpr int kNamed = 3;
  int unused = 0;
  std::string names;
  for (const StoredTensor& tensor : files.tensors()) {
    if (used.contains(tensor.name) || is_buffer(tensor.name)) continue;
    if (++unused <= kNamed) names += (names.empty() ? "'" : ", '") + tensor.name + "'";
  }
  if (unused == 0) return "";
  if (unused > kNamed) names += fmt::format(" and {} more", unused - kNamed);
  return fmt::format("{} stored {} no part of this model, neither trained nor saved: {}", unused,
                     unused == 1 ? "tensor is" : "tensors are", names);
}

}  // namespace

std::vector<std::string> load_stored_weights(Engine& engine, const std::string& model,
                                             const ModelConfig& config,
                                             const comm::Communicator& communicator) {
  const ModelFiles files(model);
  refuse_other_head(files, config, model, communicator, engine.beat());
  load_weights(engine, files, *config.family);
  const std::string unused = describe_unused(files, engine, config);
  if (unused.empty()) return {};
  return {model + ": " + unused};
}

}  // namespace strata::train
