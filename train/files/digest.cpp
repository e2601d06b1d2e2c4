#include "train/files/digest.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace strata::train {

Digest piece_digest(std::string_view name, std::string_view kind, std::int64_t first_element,
                    std::span<const std::byte> data) {
  // NUL is the separator: neither names nor kinds contain it.
  std::string key(name);
  key += '\0';
  key += kind;
  key += '\0';
  const std::size_t end = key.size();
  key.resize(end + sizeof first_element);
  std::memcpy(key.data() + end, &first_element, sizeof first_element);
  return hash_128(data, hash_64(std::as_bytes(std::span(key))));
}

Digest range_digest(std::string_view name, std::string_view kind, std::int64_t flat_begin,
                    std::int64_t first_element, std::span<const std::byte> data,
                    std::int64_t element_bytes, std::int64_t elements_per_value) {
  const std::int64_t cell = kCellElements / elements_per_value;
  const auto elements = static_cast<std::int64_t>(data.size()) / element_bytes;
  STRATA_CHECK(elements * element_bytes == static_cast<std::int64_t>(data.size()), name,
               data.size());
  STRATA_CHECK(first_element == 0 || (flat_begin + first_element) % cell == 0, name,
               "range begins inside of a cell", first_element);
  Digest sum;
  for (std::int64_t i = 0; i < elements;) {
    const std::int64_t flat = flat_begin + first_element + i;
    const std::int64_t count = std::min(cell - flat % cell, elements - i);
    sum += piece_digest(name, kind, first_element + i,
                        data.subspan(static_cast<std::size_t>(i * element_bytes),
                                     static_cast<std::size_t>(count * element_bytes)));
    i += count;
  }
  return sum;
}

}  // namespace strata::train
