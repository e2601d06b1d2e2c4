// Helpers of the kernels of norm.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/float_rows.h"
#include "kernels/device/stream.h"

namespace strata::kernels {

/// The vectors along the last dimension, numbered through all rows and heads.
struct Vectors {
  std::int64_t columns, heads, count;

  explicit Vectors(const Tensor& x) {
    const Shape& shape = x.type.shape;
    columns = shape[shape.ndim() - 1];
    heads = shape.ndim() == 3 ? shape[1] : 1;
    count = shape[0] * heads;
  }
  [[nodiscard]] std::int64_t row(std::int64_t vector) const { return vector / heads; }
  [[nodiscard]] std::int64_t column(std::int64_t vector) const { return vector % heads * columns; }
  [[nodiscard]] const float* load(const Tensor& tensor, std::int64_t vector, float* buffer) const {
    return floats_of(tensor, row(vector), column(vector), columns, buffer);
  }
  [[nodiscard]] float* room(const Tensor& tensor, std::int64_t vector, float* buffer) const {
    return floats_for(tensor, row(vector), column(vector), buffer);
  }
  void put(const float* values, const Tensor& tensor, std::int64_t vector) const {
    put_floats(values, tensor, row(vector), column(vector), columns);
  }
  [[nodiscard]] float* stats(const Tensor& tensor, std::int64_t vector) const {
    return tensor.row<float>(row(vector)) + vector % heads * 2;
  }
};

/// Hands out the workspace of a call as rows of fp32.
class Rows {
 public:
  Rows(const KernelCall& call, std::int64_t columns)
      : next_(reinterpret_cast<float*>(call.workspace.data())), columns_(columns) {
    end_ = next_ + call.workspace.size() / sizeof(float);
  }
  float* take(std::int64_t count) {
    float* rows = next_;
    next_ += count * columns_;
    STRATA_CHECK(next_ <= end_, "workspace too small");
    return rows;
  }

 private:
  float *next_, *end_;
  std::int64_t columns_;
};

}  // namespace strata::kernels
