#include "train/engine/build_programs.h"
#include "train/engine/engine.h"

/// Compiled and not linked: it has the includes that a model of one's own needs.
strata::train::Body one_layer(strata::runtime::GraphBuilder& b,
                              const strata::train::ModelConfig& config, bool) {
  b.begin_block("only");
  const auto table = b.padded_matrix("table.weight", config.vocabulary, config.padded_vocabulary(),
                                     config.hidden, {config.initializer_range, 0});
  return {.hidden = b.embedding(table, strata::runtime::kNoValue), .head = table};
}

strata::train::ProgramRequest request() {
  static constexpr strata::train::ModelFamily kFamily{.model_type = "one_layer",
                                                      .build = one_layer};
  return {.model = {.family = &kFamily, .vocabulary = 256, .hidden = 16}, .options = {}};
}
