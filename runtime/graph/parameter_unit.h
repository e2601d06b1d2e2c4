// Parameter units (design 2.11): one block's parameters of one kind in one gapless flat space.
// Shards, gathers, reductions, optimizer records and files all speak in elements of this space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/tensor.h"

namespace strata::runtime {

/// Flat space is cut only at multiples of this many elements, whatever stage or world.
inline constexpr std::int64_t kCellElements = 1024;
/// Each product's group starts at a multiple of this.
inline constexpr std::int64_t kGroupAlignment = 128;

/// How a parameter begins when no file gives it: normal(0, deviation), or a constant (deviation 0).
struct Initializer {
  double deviation = 0;
  double constant = 0;
};

/// One tensor of the model under its Hugging Face name.
struct Segment {
  std::string name;
  kernels::Shape shape;              ///< as in the files
  std::int64_t offset_elements = 0;  ///< in the unit's flat space
  std::int64_t elements = 0;         ///< shape.elements()
  std::int64_t padded_elements = 0;  ///< more than elements where memory pads (vocabulary): zeros
  double weight_decay = 0;           ///< of this segment; the optimizer's per-segment setting
  Initializer initializer;
};

struct ParameterUnit {
  std::string name;      ///< "layer.3.matrices"
  int number = 0;        ///< in the whole model, whatever part of it a rank holds
  int block = 0;         ///< index into Graph::blocks of its first use
  bool matrices = true;  ///< false: vectors (norms, biases)
  std::vector<Segment> segments;
  std::int64_t elements = 0;  ///< padded to whole cells

  /// Appends a segment; `new_group` aligns it to kGroupAlignment. Returns its index.
  int add(std::string segment_name, kernels::Shape shape, std::int64_t padded_elements,
          bool new_group, Initializer initializer);
  /// Pads the space to whole cells; call once after the last segment.
  void seal();
};

}  // namespace strata::runtime
