// The golden values of README.md, as tests read them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/files/model_files.h"

namespace strata::tests {

/// By Hugging Face name, row-major.
using Tensors = std::map<std::string, std::vector<double>>;

/// One model directory and the file of what transformers computes with it.
struct GoldenCase {
  std::string name;
  std::string directory;
  std::string values;  ///< golden.safetensors; a variant (NAME-...) has that of NAME
};

/// Every directory beside README.md, sorted.
std::vector<GoldenCase> golden_cases();

/// Any float type, as fp64.
std::vector<double> read_doubles(const train::ModelFiles& files, const std::string& tensor);
std::vector<std::int32_t> read_ids(const train::ModelFiles& files, const std::string& tensor);

/// The tensors whose names begin with `prefix`, under the rest of their names.
Tensors read_tensors(const train::ModelFiles& files, const std::string& prefix);

/// |a - b| / |b| in L2 norm; NaN when the sizes differ.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace strata::tests
