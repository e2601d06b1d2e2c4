// Tells which version each byte of one root holds, for the verifier's replay of a Program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// A range of `rows` rows of `columns` bytes: the first is at `begin`, starts are `stride` apart.
struct ByteRows {
  std::int64_t begin = 0;
  std::int64_t columns = 0;
  std::int64_t rows = 1;
  std::int64_t stride = 0;
  [[nodiscard]] bool contiguous() const { return rows == 1 || columns == stride; }
  [[nodiscard]] std::int64_t end() const { return begin + (rows - 1) * stride + columns; }
};

/// Returns the bytes that a tensor of this type covers from byte `begin` on.
inline ByteRows rows_of(const kernels::TensorType& type, std::int64_t begin) {
  const std::int64_t element = size_of(type.dtype);
  return {begin, type.shape.cols() * element, type.shape.rows(), type.row_stride * element};
}

/// Keeps a root as rows of a fixed length, each a map of stretches, and merges equal neighbouring
/// rows: a strided view (q in the packed product of q, k and v) then costs as little as a
/// contiguous one, whatever the number of its rows. Views with other strides are handled correctly,
/// but cost a step per row.
class VersionMap {
 public:
  static constexpr std::int32_t kNothing = -1;
  struct Content {
    std::int32_t version = kNothing;
    ValueId lost_to = kNoValue;  ///< the value that took the bytes, if they hold nothing any more
    int condition =
        0;  ///< not 0: they hold it only if this predicate held (numbered by the replay)
  };

  /// Makes a map with rows of `row_bytes`, in which every byte holds `initial`.
  VersionMap(std::int64_t row_bytes, Content initial) : row_bytes_(row_bytes) {
    bands_[0][0] = initial;
  }

  /// Calls visit(Content&, byte) for stretches that together cover `rows`; `byte` is the first of
  /// each.
  template <typename Visit>
  void for_each(const ByteRows& rows, const Visit& visit) {
    if (rows.contiguous())
      range(rows.begin, rows.end(), visit);
    else if (rows.stride == row_bytes_ && rows.begin % row_bytes_ + rows.columns <= row_bytes_)
      block(rows.begin / row_bytes_, rows.rows, rows.begin % row_bytes_, rows.columns, visit);
    else
      for (std::int64_t r = 0; r < rows.rows; ++r) {
        const std::int64_t begin = rows.begin + r * rows.stride;
        range(begin, begin + rows.columns, visit);
      }
  }

 private:
  using Row = std::map<std::int64_t, Content>;  // maps the first byte of a stretch to what it holds

  template <typename Map>
  static typename Map::iterator split(Map& map, std::int64_t at) {
    const auto next = map.lower_bound(at);
    if (next != map.end() && next->first == at) return next;
    return map.emplace_hint(next, at, std::prev(next)->second);
  }

  template <typename Visit>
  void range(std::int64_t begin, std::int64_t end, const Visit& visit) {
    while (begin < end) {
      const std::int64_t row = begin / row_bytes_, column = begin % row_bytes_;
      const std::int64_t whole = column == 0 ? (end - begin) / row_bytes_ : 0;
      const std::int64_t columns =
          whole > 0 ? row_bytes_ : std::min(row_bytes_ - column, end - begin);
      block(row, std::max<std::int64_t>(whole, 1), column, columns, visit);
      begin += std::max<std::int64_t>(whole, 1) * columns;
    }
  }

  template <typename Visit>
  void block(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
             const Visit& visit) {
    auto band = split(bands_, row);
    split(bands_, row + rows);
    for (; band != bands_.end() && band->first < row + rows; ++band) {
      auto stretch = split(band->second, column);
      split(band->second, column + columns);
      for (; stretch != band->second.end() && stretch->first < column + columns; ++stretch)
        visit(stretch->second, band->first * row_bytes_ + stretch->first);
    }
  }

  std::int64_t row_bytes_;
  std::map<std::int64_t, Row> bands_;  // maps the first of equal rows to what each of them holds
};

}  // namespace strata::runtime
