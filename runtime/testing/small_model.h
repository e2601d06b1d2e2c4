// Graphs for tests that need a whole step and no model family.
#pragma once

#include <cstdint>

#include "runtime/graph/graph.h"

namespace strata::runtime {

struct SmallModelShape {
  int layers = 3;
  bool tied_head = true;
  std::int64_t vocabulary = 128;
  std::int64_t hidden = 32;
  std::int64_t width = 64;  ///< of the layers' inner products
  std::int64_t batch = 2;
  std::int64_t sequence = 8;
  double dropout = 0;
};

struct SmallModel {
  Graph graph;
  ValueId loss = kNoValue;
};

/// The forward pass of embedding, layers of norm, linear, gelu, linear, residual, and head with
/// loss. Blocks "embedding", "layer.I" and "head"; fp32.
SmallModel small_model(const SmallModelShape& shape = {});

/// What communication looks like, and little else, on one rank of `world`: for each link gather a
/// parameter of `elements` from persistent shards "shard.I" and add it to a running sum that starts
/// as a copy of persistent "start"; reduce-scatter the sum into persistent "result" and keep it in
/// "start", so that running it again goes on from there. Partitions are even; `elements` is a
/// multiple of `world`.
Graph relay(int links, std::int64_t elements, int world);

}  // namespace strata::runtime
