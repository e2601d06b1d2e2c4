#include "train/planning/ended_early.h"

#include <fmt/format.h>

namespace strata::train {

std::string ended_early_text(std::string_view missed, std::string_view first) {
  return fmt::format(
      "\n  the search ended early, and {}: {}give one or two settings yourself, such as --zero N, "
      "--micro-batch N or --layer-major, and it has fewer to compare",
      missed, first);
}

}  // namespace strata::train
