#include "train/data/sample_order.h"

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "train/data/permutation.h"

namespace strata::train {

SampleOrder::SampleOrder(std::int64_t tokens, const std::string& source,
                         const SampleOrderOptions& options)
    : tokens_(tokens), options_(options) {
  STRATA_CHECK(options.sequence > 0, options.sequence);
  // The rule without shuffling takes a remainder by tokens - sequence - 1, which must not be zero.
  const std::int64_t needed = options.sequence + (options.shuffle ? 1 : 2);
  if (tokens < needed)
    throw DataError(
        fmt::format("{}: too little text: {} tokens, expected at least {} for one sample of "
                    "sequence length {}; give more data or a shorter --sequence-length",
                    source, tokens, needed, options.sequence));
  const std::int64_t s = options.sequence;
  windows_ = options.shuffle ? (tokens - 1) / s : (tokens - s - 1 + s - 1) / s;
}

std::int64_t SampleOrder::start_of(std::int64_t sample) const {
  STRATA_CHECK(sample >= 0, sample);
  if (!options_.shuffle) return sample * options_.sequence % (tokens_ - options_.sequence - 1);
  const Permutation order(windows_, options_.seed, static_cast<std::uint64_t>(epoch_of(sample)));
  return order(sample % windows_) * options_.sequence;
}

}  // namespace strata::train
