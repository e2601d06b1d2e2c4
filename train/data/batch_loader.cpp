#include "train/data/batch_loader.h"

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace strata::train {

BatchLoader::BatchLoader(std::shared_ptr<const TokenSource> source, SampleOrder order, BatchEnd end)
    : source_(std::move(source)), order_(order), end_(end) {}

void BatchLoader::fill(const BatchPlace& place, std::span<std::int32_t> ids,
                       std::span<std::int32_t> targets, std::span<std::int64_t> samples) const {
  const auto rows = std::ssize(samples);
  const auto width = static_cast<std::size_t>(order_.sequence());
  STRATA_CHECK(ids.size() == samples.size() * width && targets.size() == ids.size(), ids.size());
  STRATA_CHECK(place.data_rank >= 0 && place.data_rank < place.data_ranks, place.data_rank,
               place.data_ranks);
  const std::int64_t first =
      place.consumed_samples + (place.micro_step * place.data_ranks + place.data_rank) * rows;
  std::vector<std::int32_t> window(width + 1);
  for (std::int64_t j = 0; j < rows; ++j) {
    const std::int64_t sample = first + j;
    const auto row = static_cast<std::size_t>(j);
    samples[row] = sample;
    const auto row_ids = ids.subspan(row * width, width);
    const auto row_targets = targets.subspan(row * width, width);
    if (end_ == BatchEnd::stop && sample >= order_.windows()) {
      std::fill(row_ids.begin(), row_ids.end(), 0);
      std::fill(row_targets.begin(), row_targets.end(), -1);
      continue;
    }
    source_->read(order_.start_of(sample), window);
    std::copy(window.begin(), window.end() - 1, row_ids.begin());
    std::copy(window.begin() + 1, window.end(), row_targets.begin());
  }
}

}  // namespace strata::train
