// Works on many pieces of data with several threads in bounded memory, taking small ones together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace strata::train {

/// Limit on the bytes of a part's elements, which one thread reads at a time.
inline constexpr std::int64_t kPartBytes = std::int64_t{8} << 20;

/// Calls body(first, end) for neighbouring pieces of `piece_bytes`, with at most kPartBytes in all
/// unless a single piece is larger; each piece once, from several threads. When all threads have
/// ended, throws the exception of the first pieces that failed.
void for_each_batch(std::span<const std::int64_t> piece_bytes, int threads,
                    const std::function<void(std::size_t first, std::size_t end)>& body);

}  // namespace strata::train
