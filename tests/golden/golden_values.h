// Reads the golden values that README.md describes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/files/model_files.h"

namespace strata::tests {

/// Row-major elements by Hugging Face name.
using Tensors = std::map<std::string, std::vector<double>>;

/// A model directory, and the file with what transformers computes from it.
struct GoldenCase {
  std::string name;
  std::string directory;
  std::string values;  ///< golden.safetensors; a variant (NAME-...) uses that of NAME
};

/// Lists every directory beside README.md, sorted.
std::vector<GoldenCase> golden_cases();

/// Reads a tensor of any float type as fp64.
std::vector<double> read_doubles(const train::ModelFiles& files, const std::string& tensor);
std::vector<std::int32_t> read_ids(const train::ModelFiles& files, const std::string& tensor);

/// Reads the tensors whose names begin with `prefix`, and drops it from their names.
Tensors read_tensors(const train::ModelFiles& files, const std::string& prefix);

/// |a - b| / |b| in L2 norm; NaN when the sizes differ.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace strata::tests
