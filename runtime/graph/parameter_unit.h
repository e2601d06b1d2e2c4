// Parameter units (design 2.11): one block's parameters of one kind in one flat space. Shards,
// gathers, reductions, optimizer records and files all count in elements of this space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device/tensor.h"

namespace strata::runtime {

/// Flat space is cut only at multiples of this many elements, whatever the stage or world.
inline constexpr std::int64_t kCellElements = 1024;
/// The group of each product starts at a multiple of this many elements.
inline constexpr std::int64_t kGroupAlignment = 128;

/// The first values of a parameter that no file has: normal(0, deviation), or a constant (deviation
/// 0).
struct Initializer {
  double deviation = 0;
  double constant = 0;
};

/// One tensor of the model under its Hugging Face name.
struct Segment {
  std::string name;
  kernels::Shape shape;              ///< the shape in files
  std::int64_t offset_elements = 0;  ///< position in the unit's flat space
  std::int64_t elements = 0;         ///< shape.elements()
  std::int64_t padded_elements = 0;  ///< greater if memory is padded (vocabulary): zeros
  double weight_decay = 0;           ///< the optimizer's setting for this segment
  Initializer initializer;
};

struct ParameterUnit {
  std::string name;      ///< example: "layer.3.matrices"
  int number = 0;        ///< index in the whole model, even if a rank has only a part
  int block = 0;         ///< index into Graph::blocks of the unit's first use
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
