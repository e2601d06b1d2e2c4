// Makes Graphs for tests that need a whole step but no model family.
#pragma once

#include <cstdint>

#include "runtime/graph/graph.h"

namespace strata::runtime {

struct SmallModelShape {
  int layers = 3;
  bool tied_head = true;
  std::int64_t vocabulary = 128;
  std::int64_t hidden = 32;
  std::int64_t width = 64;  ///< width of the layers' inner products
  std::int64_t batch = 2;
  std::int64_t sequence = 8;
  double dropout = 0;
};

struct SmallModel {
  Graph graph;
  ValueId loss = kNoValue;
};

/// Makes the forward pass of embedding, layers of norm, linear, gelu, linear, residual, and head
/// with loss. Blocks are "embedding", "layer.I" and "head"; fp32.
SmallModel small_model(const SmallModelShape& shape = {});

/// Makes a Graph of little but communication, for one rank of `world`: each link gathers a
/// parameter of `elements` from persistent shards "shard.I" and adds it to a running sum, which
/// starts as a copy of persistent "start". The sum is reduce-scattered into persistent "result" and
/// kept in "start", so that another run goes on from there. Partitions are even; `elements` is a
/// multiple of `world`.
Graph relay(int links, std::int64_t elements, int world);

}  // namespace strata::runtime
