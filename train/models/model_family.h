// A model family: how models of one architecture are read, built and written. Those of this
// repository are rows of one table (model_family.cpp); a program outside hands in rows of its own.
#pragma once

#include <span>
#include <string_view>

#include "train/models/model_config.h"

namespace strata {
class JsonWriter;
}
namespace strata::runtime {
class GraphBuilder;
}

namespace strata::train {

struct Body;  // train/models/transformer.h
class HfReader;

/// One row. Outlives the ModelConfigs that point to it, and so the Programs and engines of them.
struct ModelFamily {
  std::string_view model_type;         ///< of config.json: "gpt2"
  std::string_view architecture = {};  ///< of config.json, what transformers builds
  /// Adds the blocks "embedding", "layer.0" ..., "head" of the forward pass, with dropout where
  /// `training`. Throws InvalidArgument for a `config` that can be no model's.
  Body (*build)(runtime::GraphBuilder& builder, const ModelConfig& config, bool training) = nullptr;
  /// Fills what differs between families: family and initializer_range are set before. Throws
  /// ConfigError (HfReader::fail). Null: no config.json is of this family.
  void (*read)(const HfReader& reader, ModelConfig& config) = nullptr;
  /// Writes the members that `config` decides into an open object, in the order of a new file.
  /// Null: config.json keeps what it was read with.
  void (*write)(const ModelConfig& config, JsonWriter& out) = nullptr;
  /// Before the names of `build`, missing in files of the model without its head: "transformer."
  std::string_view prefix = {};
  std::string_view embedding = {};  ///< the tensor that a tied head is; "": files are not compared
  bool learned_positions = false;   ///< of which there are ModelConfig::context
  int mlp_matrices = 2;  ///< of a layer, each hidden x intermediate: counts its arithmetic
};

/// The rows of this repository.
std::span<const ModelFamily> built_in_families();

/// The row of a model_type, from `own` first; null: there is none.
const ModelFamily* find_family(std::string_view model_type, std::span<const ModelFamily> own = {});

}  // namespace strata::train
