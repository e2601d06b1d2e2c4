// Numbers that disk benchmarks count and report.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace strata::bench {

/// Returns the median, 0 of no values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns the bytes that this process has read and written, by the kernel's count.
inline std::int64_t counted_bytes() {
  std::ifstream file("/proc/self/io");
  std::int64_t sum = 0;
  std::string key;
  std::int64_t value = 0;
  while (file >> key >> value)
    if (key == "read_bytes:" || key == "write_bytes:") sum += value;
  return sum;
}

}  // namespace strata::bench
