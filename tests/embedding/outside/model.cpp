#include "runtime/graph_builder.h"
#include "train/engine/engine.h"

/// Compiled, not linked: what a model of one's own includes.
strata::runtime::Graph one_layer() {
  strata::runtime::GraphBuilder b(strata::DType::f32, 2, 4);
  b.begin_block("only");
  const strata::runtime::Initializer normal{0.02, 0};
  const auto table = b.padded_matrix("table.weight", 256, 256, 16, normal);
  b.head_loss(b.embedding(table, strata::runtime::kNoValue), table, 256);
  return b.finish();
}
