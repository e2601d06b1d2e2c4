// Checks that saved values are finite while their bytes pass by, so that nothing is read twice.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace strata::train {

/// True if no element is NaN or infinite. Integers and quantized values always pass.
bool are_finite(DType dtype, std::span<const std::byte> values);

/// Remembers the first tensor that held a NaN or an infinity. Thread-safe.
class ValueCheck {
 public:
  void look(std::string_view tensor, DType dtype, std::span<const std::byte> values);
  /// The name of that tensor; empty if all values were finite.
  [[nodiscard]] std::string not_finite() const;

 private:
  mutable std::mutex mutex_;
  std::string not_finite_;
};

}  // namespace strata::train
