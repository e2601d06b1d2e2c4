// Computes digests of state that do not depend on which rank holds which part (design 2.18).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/hash.h"

namespace strata::train {

/// A cell has this many elements of a unit's flat space; shards begin at cell borders.
inline constexpr std::int64_t kCellElements = 1024;

/// A sum of the hashes of pieces.
using Digest = Hash128;

/// Hashes one piece: a tensor's part of one cell. `first_element`: the piece's first element in the
/// tensor; `kind`: kind of state ("master", "moment1"); `data`: the piece's bytes in memory order.
Digest piece_digest(std::string_view name, std::string_view kind, std::int64_t first_element,
                    std::span<const std::byte> data);

/// Sums the hashes of the pieces of elements [first_element, first_element + data / element_bytes)
/// of a tensor whose element 0 is at `flat_begin` of its unit's flat space. The range must begin
/// and end at cell borders or at the tensor's own ends; then the sums of disjoint ranges add up to
/// the tensor's digest, however it is divided. For state with one value per `elements_per_value`
/// elements (scales of blocks) all positions count values: a cell has 1024 / elements_per_value.
Digest range_digest(std::string_view name, std::string_view kind, std::int64_t flat_begin,
                    std::int64_t first_element, std::span<const std::byte> data,
                    std::int64_t element_bytes, std::int64_t elements_per_value = 1);

}  // namespace strata::train
