// Reads and writes the header of a safetensors file. The file has 8 bytes of little-endian length,
// JSON, then the tensors' bytes without holes (https://github.com/huggingface/safetensors#format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/file.h"

namespace strata::train {

/// A tensor as it is stored. `dtype` is empty if the file's type has no DType ("F8_E4M3"): such a
/// tensor can be listed but not read.
struct StoredTensor {
  std::string name;
  std::string stored_type;  ///< word of the file: "BF16"
  std::optional<DType> dtype;
  std::vector<std::int64_t> shape;
  std::string file;               ///< path
  std::int64_t offset_bytes = 0;  ///< offset in the file
  std::int64_t size_bytes = 0;

  [[nodiscard]] std::int64_t elements() const;
  /// The shape as "[50257, 768]".
  [[nodiscard]] std::string shape_text() const;
};

/// Name, type and shape of a tensor to be written.
struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// The format's name of a type, such as "F32".
std::string_view safetensors_type(DType dtype);

/// Reads and checks the header of an open file: length, JSON, types, offsets inside the file, no
/// overlap, no hole, sizes that agree with shapes. Returns the tensors by offset. Throws DataError
/// naming file, tensor, found and expected.
std::vector<StoredTensor> read_safetensors_header(const File& file);

/// Parses the header of a file called `file`, of which `beginning` has the header at least.
std::vector<StoredTensor> parse_safetensors_header(std::span<const std::byte> beginning,
                                                   std::int64_t file_size_bytes,
                                                   const std::string& file);

/// Makes the beginning of a file that holds `tensors` in this order: length and JSON, padded with
/// spaces so that the data begins at a multiple of 4,096.
std::string make_safetensors_header(std::span<const TensorSpec> tensors, const Metadata& metadata);

/// Says what bytes [begin, end) of a file hold: "tensor 'x' elements 10 to 20" (the end excluded),
/// the first and last of several tensors, or "the header". `tensors`: those of the file, by offset;
/// uses their names, dtypes and places only.
std::string describe_bytes(std::span<const StoredTensor> tensors, std::int64_t header_bytes,
                           std::int64_t begin, std::int64_t end);

/// Elements of a shape; nullopt if the product overflows or an extent is negative.
std::optional<std::int64_t> checked_elements(std::span<const std::int64_t> shape);

}  // namespace strata::train
