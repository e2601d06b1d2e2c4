#include "train/inspect/folder_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "train/inspect/batches.h"
#include "train/inspect/element_values.h"

namespace strata::train {
namespace {

constexpr std::int64_t kSlice = 4096;

bool same_form(const StoredTensor& a, const StoredTensor& b) {
  return a.stored_type == b.stored_type && a.shape == b.shape;
}

}  // namespace

void TensorDifference::add(const TensorDifference& other) {
  elements += other.elements;
  largest = std::max(largest, other.largest);
}

TensorDifference difference_of(DType dtype, std::span<const std::byte> a,
                               std::span<const std::byte> b) {
  TensorDifference result;
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return result;
  double of_a[kSlice], of_b[kSlice];
  const std::int64_t size = size_of(dtype);
  const auto count = static_cast<std::int64_t>(a.size()) / size;
  for (std::int64_t done = 0; done < count; done += kSlice) {
    const std::int64_t here = std::min(kSlice, count - done);
    const std::byte* const from_a = a.data() + done * size;
    const std::byte* const from_b = b.data() + done * size;
    if (std::memcmp(from_a, from_b, static_cast<std::size_t>(here * size)) == 0) continue;
    to_doubles(dtype, from_a, of_a, here);
    to_doubles(dtype, from_b, of_b, here);
    for (std::int64_t i = 0; i < here; ++i) {
      if (std::memcmp(from_a + i * size, from_b + i * size, static_cast<std::size_t>(size)) == 0)
        continue;
      const double distance = std::abs(of_a[i] - of_b[i]);
      result.add({1, std::isfinite(of_a[i]) && std::isfinite(of_b[i])
                         ? distance
                         : std::numeric_limits<double>::infinity()});
    }
  }
  return result;
}

bool FolderDifference::same() const {
  return only_a.empty() && only_b.empty() && other_form.empty() &&
         std::all_of(differences.begin(), differences.end(),
                     [](const TensorDifference& difference) { return difference.elements == 0; });
}

FolderDifference compare_folders(const TensorFolder& a, const TensorFolder& b, int threads) {
  FolderDifference result;
  std::map<std::pair<bool, std::string>, std::size_t> places;
  for (std::size_t t = 0; t < b.tensors().size(); ++t)
    places.emplace(std::pair(b.tensors()[t].optimizer, b.tensors()[t].stored.name), t);
  std::vector<bool> found(b.tensors().size());
  std::vector<TensorPart> of_a, of_b;
  std::vector<std::size_t> pair_of_part;
  std::vector<std::int64_t> bytes;
  for (std::size_t t = 0; t < a.tensors().size(); ++t) {
    const StoredTensor& stored = a.tensors()[t].stored;
    const auto place = places.find({a.tensors()[t].optimizer, stored.name});
    if (place == places.end()) {
      result.only_a.push_back(t);
      continue;
    }
    const FolderDifference::Pair pair{t, place->second};
    found[pair.b] = true;
    if (!same_form(stored, b.tensors()[pair.b].stored)) {
      result.other_form.push_back(pair);
      continue;
    }
    // bytes_of refuses types that cannot be read; with 1 element it does so for empty tensors, too.
    const std::int64_t part_elements = kPartBytes / a.bytes_of({t, 0, 1});
    for (const TensorPart& part : cut_tensor(t, stored.elements(), part_elements)) {
      of_a.push_back(part);
      of_b.push_back({pair.b, part.first_element, part.elements});
      bytes.push_back(a.bytes_of(part));
      pair_of_part.push_back(result.compared.size());
    }
    result.compared.push_back(pair);
  }
  for (std::size_t t = 0; t < found.size(); ++t)
    if (!found[t]) result.only_b.push_back(t);
  std::vector<TensorDifference> of_part(of_a.size());
  for_each_batch(bytes, threads, [&](std::size_t first, std::size_t end) {
    std::vector<std::byte> buffer_a, buffer_b;
    const auto views_a = a.read(std::span(of_a).subspan(first, end - first), buffer_a);
    const auto views_b = b.read(std::span(of_b).subspan(first, end - first), buffer_b);
    for (std::size_t i = first; i < end; ++i)
      of_part[i] = difference_of(*a.tensors()[of_a[i].tensor].stored.dtype, views_a[i - first],
                                 views_b[i - first]);
  });
  result.differences.resize(result.compared.size());
  for (std::size_t i = 0; i < of_part.size(); ++i)
    result.differences[pair_of_part[i]].add(of_part[i]);
  return result;
}

}  // namespace strata::train
