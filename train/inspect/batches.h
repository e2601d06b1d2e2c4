// Work on many pieces of data, small ones together, by several threads in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace strata::train {

/// Elements of a part are at most this many bytes: what one thread reads at a time.
inline constexpr std::int64_t kPartBytes = std::int64_t{8} << 20;

/// body(first, end) over neighbouring pieces of `piece_bytes`, together at most kPartBytes where a
/// single one is not larger; each piece once, from several threads. Of several exceptions the one
/// of the first pieces is thrown, when all threads have ended.
void for_each_batch(std::span<const std::int64_t> piece_bytes, int threads,
                    const std::function<void(std::size_t first, std::size_t end)>& body);

}  // namespace strata::train
