// Digests of state that do not depend on who holds which part (design 2.18).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/hash.h"

namespace strata::train {

/// A unit's flat space is cut into cells of this many elements; shards begin at cell borders.
inline constexpr std::int64_t kCellElements = 1024;

/// A sum of piece hashes; hex() prints it.
using Digest = Hash128;

/// Hash of one piece: a tensor's part of one cell. `first_element` is the piece's place in the
/// tensor, `kind` what it is ("master", "exp_avg"), `data` its bytes in memory order.
Digest piece_digest(std::string_view name, std::string_view kind, std::int64_t first_element,
                    std::span<const std::byte> data);

/// Sum over the pieces of elements [first_element, first_element + data / element_bytes) of a
/// tensor whose element 0 stands at `flat_begin` of its unit's flat space. The range must begin and
/// end at cell borders or at the tensor's own ends; then the sums of disjoint ranges add up to the
/// tensor's digest, however it is divided. For state with one value per `elements_per_value`
/// elements (scales of blocks) all places count values: a cell has 1024 / elements_per_value.
Digest range_digest(std::string_view name, std::string_view kind, std::int64_t flat_begin,
                    std::int64_t first_element, std::span<const std::byte> data,
                    std::int64_t element_bytes, std::int64_t elements_per_value = 1);

}  // namespace strata::train
