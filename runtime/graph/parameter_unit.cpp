#include "runtime/graph/parameter_unit.h"

#include "core/check.h"
#include "core/round_up.h"

namespace strata::runtime {

int ParameterUnit::add(std::string segment_name, kernels::Shape shape, std::int64_t padded_elements,
                       bool new_group, Initializer initializer) {
  STRATA_CHECK(padded_elements >= shape.elements(), segment_name);
  Segment segment;
  segment.name = std::move(segment_name);
  segment.shape = shape;
  segment.offset_elements = new_group ? round_up(elements, kGroupAlignment) : elements;
  segment.elements = shape.elements();
  segment.padded_elements = padded_elements;
  segment.initializer = initializer;
  elements = segment.offset_elements + padded_elements;
  segments.push_back(std::move(segment));
  return static_cast<int>(segments.size()) - 1;
}

void ParameterUnit::seal() { elements = round_up(elements, kCellElements); }

}  // namespace strata::runtime
