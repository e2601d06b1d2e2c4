#include "tests/golden/golden_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>

namespace strata::tests {

namespace fs = std::filesystem;

namespace {

/// Returns the folder beside the program in an unpacked bundle, or else that of the source tree.
fs::path golden_directory() {
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / "golden";
  return fs::exists(beside / "README.md", error) ? beside : fs::path(GOLDEN_DIRECTORY);
}

}  // namespace

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  const fs::path directory = golden_directory();
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    const std::string name = entry.path().filename();
    fs::path values = entry.path() / "golden.safetensors";
    if (!fs::exists(values))
      values = directory / name.substr(0, name.find('-')) / "golden.safetensors";
    cases.push_back({name, entry.path(), values});
  }
  std::ranges::sort(cases, {}, &GoldenCase::name);
  return cases;
}

std::vector<double> read_doubles(const train::ModelFiles& files, const std::string& tensor) {
  std::vector<double> values(static_cast<std::size_t>(files.at(tensor).elements()));
  files.read(tensor, 0, files.at(tensor).elements(), DType::f64,
             std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<std::int32_t> read_ids(const train::ModelFiles& files, const std::string& tensor) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(files.at(tensor).elements()));
  files.read(tensor, 0, files.at(tensor).elements(), DType::i32,
             std::as_writable_bytes(std::span(values)));
  return values;
}

Tensors read_tensors(const train::ModelFiles& files, const std::string& prefix) {
  Tensors tensors;
  for (const train::StoredTensor& stored : files.tensors())
    if (stored.name.starts_with(prefix))
      tensors[stored.name.substr(prefix.size())] = read_doubles(files, stored.name);
  return tensors;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::quiet_NaN();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace strata::tests
