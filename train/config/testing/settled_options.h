// Helpers of this folder's tests: JSON text and flags in, a resolved configuration out.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "train/config/resolve.h"
#include "train/models/model_family.h"

namespace strata::train {

inline ParsedCommandLine flags(std::vector<std::string> words) {
  std::vector<const char*> pointers = {"train"};
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_train_command_line(static_cast<int>(pointers.size()), pointers.data());
}

inline constexpr ModelFamily kLearnedPositions{.model_type = "learned", .learned_positions = true};
inline constexpr ModelFamily kRotaryPositions{.model_type = "rotary"};

/// A small model of width 64, with learned positions.
inline ModelConfig small_model() {
  ModelConfig model;
  model.family = &kLearnedPositions;
  model.vocabulary = 256;
  model.layers = 2;
  model.hidden = 64;
  model.heads = model.kv_heads = 2;
  model.head_size = 32;
  model.intermediate = 256;
  model.context = 128;
  return model;
}

inline ResolvedConfig resolve_flags(const std::vector<std::string>& words, int world = 1) {
  return resolve(flags(words), world, small_model());
}

/// Resolves JSON text, which messages call "ds.json".
inline ResolvedConfig resolve_text(const std::string& json,
                                   const std::vector<std::string>& words = {}, int world = 1,
                                   const ModelConfig& model = small_model()) {
  const ParsedCommandLine line = flags(words);
  return resolve(line, parse_deepspeed_json(json, "ds.json", line.strict), world, model);
}

/// The message of the refusal; "" if there is none.
inline std::string refusal(const std::string& json, const std::vector<std::string>& words = {},
                           int world = 1, const ModelConfig& model = small_model()) {
  try {
    resolve_text(json, words, world, model);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A complete file with these additional members.
inline std::string with_batch(const std::string& members) {
  return "{\"train_micro_batch_size_per_gpu\": 2" + (members.empty() ? "" : ",\n" + members) + "}";
}

inline std::string value_of(const ResolvedConfig& resolved, const std::string& option) {
  for (const ResolvedField& field : resolved.fields) {
    if (field.name == option) return field.value;
  }
  return "no such option: " + option;
}

inline std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

}  // namespace strata::train
