#include "train/inspect/tensor_statistics.h"

#include <algorithm>
#include <cmath>

#include "train/inspect/batches.h"
#include "train/inspect/element_values.h"

namespace strata::train {
namespace {

/// Elements converted at a time; a multiple of the lanes.
constexpr std::int64_t kStatisticsSlice = 4096;
/// Number of parallel sums, so that an addition need not wait for the one before.
constexpr int kLanes = 8;

}  // namespace

void TensorStatistics::add(const TensorStatistics& other) {
  least = std::min(least, other.least);
  largest = std::max(largest, other.largest);
  sum += other.sum;
  squares += other.squares;
  finite += other.finite;
  not_finite += other.not_finite;
  zeros += other.zeros;
}

double TensorStatistics::mean() const {
  return finite > 0 ? sum / static_cast<double>(finite) : std::nan("");
}

double TensorStatistics::norm() const { return std::sqrt(squares); }

TensorStatistics statistics_of(DType dtype, std::span<const std::byte> elements) {
  TensorStatistics total;
  double values[kStatisticsSlice];
  double sum[kLanes] = {}, squares[kLanes] = {};
  const std::int64_t size = size_of(dtype);
  const auto count = static_cast<std::int64_t>(elements.size()) / size;
  for (std::int64_t done = 0; done < count; done += kStatisticsSlice) {
    const std::int64_t here = std::min(kStatisticsSlice, count - done);
    to_doubles(dtype, elements.data() + done * size, values, here);
    for (std::int64_t i = 0; i < here; ++i) {
      const double value = values[i];
      if (!std::isfinite(value)) {
        ++total.not_finite;
        continue;
      }
      total.least = std::min(total.least, value);
      total.largest = std::max(total.largest, value);
      total.zeros += value == 0 ? 1 : 0;
      sum[i % kLanes] += value;
      squares[i % kLanes] += value * value;
    }
  }
  total.finite = count - total.not_finite;
  for (int lane = 0; lane < kLanes; ++lane) {
    total.sum += sum[lane];
    total.squares += squares[lane];
  }
  return total;
}

std::vector<TensorStatistics> statistics_of(const TensorFolder& folder, int threads) {
  const auto& tensors = folder.tensors();
  std::vector<TensorPart> parts;
  std::vector<std::int64_t> bytes;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].stored.dtype) continue;
    const std::int64_t part_elements = kPartBytes / size_of(*tensors[t].stored.dtype);
    for (const TensorPart& part : cut_tensor(t, tensors[t].stored.elements(), part_elements)) {
      parts.push_back(part);
      bytes.push_back(folder.bytes_of(part));
    }
  }
  std::vector<TensorStatistics> of_part(parts.size());
  for_each_batch(bytes, threads, [&](std::size_t first, std::size_t end) {
    std::vector<std::byte> buffer;
    const auto views = folder.read(std::span(parts).subspan(first, end - first), buffer);
    for (std::size_t i = first; i < end; ++i)
      of_part[i] = statistics_of(*tensors[parts[i].tensor].stored.dtype, views[i - first]);
  });
  std::vector<TensorStatistics> result(tensors.size());
  for (std::size_t i = 0; i < parts.size(); ++i) result[parts[i].tensor].add(of_part[i]);
  return result;
}

}  // namespace strata::train
