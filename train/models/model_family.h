// A model family says how models of one architecture are read, built and written. Families of this
// repository are rows of one table (model_family.cpp); other programs pass rows of their own.
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

/// One family. Must outlive the ModelConfigs that point to it, and their Programs and engines.
struct ModelFamily {
  std::string_view model_type;         ///< name in config.json: "gpt2"
  std::string_view architecture = {};  ///< class in config.json that transformers builds
  /// Adds the blocks "embedding", "layer.0" ..., "head" of the forward pass, with dropout if
  /// `training`. Throws InvalidArgument for a `config` that no model can have. Several threads may
  /// call it at once.
  Body (*build)(runtime::GraphBuilder& builder, const ModelConfig& config, bool training) = nullptr;
  /// Reads what differs between families; family and initializer_range are set before. Throws
  /// ConfigError (HfReader::fail). Null: config.json cannot name this family.
  void (*read)(const HfReader& reader, ModelConfig& config) = nullptr;
  /// Writes the members that `config` determines into an open object, in the order of a new file.
  /// Null: config.json keeps the members it was read with.
  void (*write)(const ModelConfig& config, JsonWriter& out) = nullptr;
  /// Prefix of the names in `build`, missing in files of the model without its head: "transformer."
  std::string_view prefix = {};
  std::string_view embedding = {};  ///< tensor that a tied head equals; "": not compared with files
  bool learned_positions = false;   ///< has a learned position for each of ModelConfig::context
  int mlp_matrices = 2;             ///< number per layer, each hidden x intermediate
};

/// The rows of this repository.
std::span<const ModelFamily> built_in_families();

/// The row of a model_type, first from `own`; null if there is none.
const ModelFamily* find_family(std::string_view model_type, std::span<const ModelFamily> own = {});

}  // namespace strata::train
