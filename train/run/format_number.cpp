#include "train/run/format_number.h"

#include <cstdio>

namespace strata::train {

std::string format_number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace strata::train
