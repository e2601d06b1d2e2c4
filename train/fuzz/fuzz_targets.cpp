#include "train/fuzz/fuzz_targets.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "core/error.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "train/data/token_file.h"
#include "train/files/safetensors_header.h"

namespace strata::train {
namespace {

void check_round_trip(std::string_view text, const JsonOptions& options) {
  try {
    const JsonValue value = parse_json(text, "input", options);
    const std::string written = to_string(value, 0);
    // Escapes make a text longer, never more than six times.
    JsonOptions strict;
    strict.size_limit_bytes = 6 * options.size_limit_bytes + 64;
    STRATA_CHECK(to_string(parse_json(written, "written", strict), 0) == written, written);
  } catch (const DataError&) {  // refused, as it may be
  }
}

}  // namespace

void fuzz_json(std::span<const std::byte> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  JsonOptions options;
  options.size_limit_bytes = 1 << 20;
  check_round_trip(text, options);
  options.allow_comments = options.allow_trailing_commas = true;
  check_round_trip(text, options);
}

void fuzz_safetensors(std::span<const std::byte> input) {
  const auto size = static_cast<std::int64_t>(input.size());
  try {
    const auto tensors = parse_safetensors_header(input, size, "input");
    std::int64_t covered = 0;
    for (const StoredTensor& tensor : tensors) {
      STRATA_CHECK(tensor.offset_bytes >= 8 && tensor.size_bytes >= 0 && tensor.elements() >= 0);
      STRATA_CHECK(tensor.offset_bytes <= size - tensor.size_bytes);
      if (tensor.dtype)
        STRATA_CHECK(tensor.elements() * size_of(*tensor.dtype) == tensor.size_bytes);
      covered += tensor.size_bytes;
    }
    if (!tensors.empty()) STRATA_CHECK(tensors.front().offset_bytes + covered == size);
  } catch (const DataError&) {  // refused, as it may be
  }
}

void fuzz_tokens(std::span<const std::byte> input) {
  const auto size = static_cast<std::int64_t>(input.size());
  try {
    const auto beginning = input.first(std::min<std::size_t>(input.size(), 1024));
    const TokenLayout layout = parse_token_layout(beginning, size, "input");
    STRATA_CHECK(layout.count >= 0 &&
                 layout.offset_bytes + layout.count * layout.bytes_per_token == size);
  } catch (const DataError&) {  // refused, as it may be
  }
}

}  // namespace strata::train
