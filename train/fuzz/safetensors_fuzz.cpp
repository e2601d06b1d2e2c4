// Reads a safetensors file; tensors that are accepted must cover its data exactly.
#include <cstdint>
#include <span>

#include "core/check.h"
#include "core/error.h"
#include "train/files/safetensors_header.h"

namespace strata::train {
namespace {

void check_tensors(std::span<const StoredTensor> tensors, std::int64_t file_size_bytes) {
  std::int64_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    STRATA_CHECK(tensor.offset_bytes >= 8 && tensor.size_bytes >= 0 && tensor.elements() >= 0);
    STRATA_CHECK(tensor.offset_bytes <= file_size_bytes - tensor.size_bytes);
    if (tensor.dtype) STRATA_CHECK(tensor.elements() * size_of(*tensor.dtype) == tensor.size_bytes);
    covered += tensor.size_bytes;
  }
  if (!tensors.empty()) STRATA_CHECK(tensors.front().offset_bytes + covered == file_size_bytes);
}

}  // namespace
}  // namespace strata::train

// Fault 26.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const auto file = std::as_bytes(std::span(data, size_bytes));
  const auto size = static_cast<std::int64_t>(size_bytes);
  try {
    strata::train::check_tensors(strata::train::parse_safetensors_header(file, size, "input"),
                                 size);
  } catch (const strata::DataError&) {  // a refusal is fine
  }
  return 0;
}
