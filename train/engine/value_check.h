// Whether what is saved is finite: asked while the bytes pass by, so that nothing is read twice.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace strata::train {

/// No NaN and no infinity among whole elements; what is no real number has none.
bool are_finite(DType dtype, std::span<const std::byte> values);

/// Remembers the first tensor that was seen to hold something else. Thread-safe.
class ValueCheck {
 public:
  void look(std::string_view tensor, DType dtype, std::span<const std::byte> values);
  /// Empty: all values were finite.
  [[nodiscard]] std::string not_finite() const;

 private:
  mutable std::mutex mutex_;
  std::string not_finite_;
};

}  // namespace strata::train
