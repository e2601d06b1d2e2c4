// write_logits DIRECTORY REFERENCE OUTPUT [DTYPE] computes a model directory's logits for the
// `input_ids` of REFERENCE and writes both as safetensors, for check_directory.py to compare.
#include <cstdio>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "tests/golden/golden_values.h"
#include "tests/golden/model_logits.h"
#include "train/files/safetensors_header.h"

namespace {

using namespace strata;

template <typename T>
void append(std::string& content, const std::vector<T>& values) {
  content.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void write_logits(const std::string& directory, const std::string& reference,
                  const std::string& output, DType dtype) {
  const train::ModelFiles files(reference);
  const std::vector<std::int64_t> shape = files.at("input_ids").shape;
  const std::vector<std::int32_t> ids = tests::read_ids(files, "input_ids");
  const std::vector<double> logits = tests::model_logits(directory, dtype, ids, shape.at(1));
  const auto vocabulary = static_cast<std::int64_t>(logits.size() / ids.size());
  const std::vector<train::TensorSpec> tensors = {
      {"input_ids", DType::i32, shape}, {"logits", DType::f64, {shape[0], shape[1], vocabulary}}};
  std::string content = train::make_safetensors_header(tensors, {});
  append(content, ids);
  append(content, logits);
  write_file_atomically(output, content);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: write_logits DIRECTORY REFERENCE OUTPUT [fp32|bf16|fp16]\n");
    return static_cast<int>(ExitCode::usage);
  }
  try {
    write_logits(argv[1], argv[2], argv[3], dtype_from_name(argc == 5 ? argv[4] : "fp32"));
  } catch (const Error& error) {
    std::fprintf(stderr, "write_logits: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
  return 0;
}
