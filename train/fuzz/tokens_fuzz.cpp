// Reads a .bin token file; an accepted layout must cover the file exactly.
#include <algorithm>
#include <cstdint>
#include <span>

#include "core/check.h"
#include "core/error.h"
#include "train/data/token_file.h"

// Fault 29.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const auto file = std::as_bytes(std::span(data, size_bytes));
  const auto size = static_cast<std::int64_t>(size_bytes);
  try {
    const auto beginning = file.first(std::min<std::size_t>(size_bytes, 1024));
    const auto layout = strata::train::parse_token_layout(beginning, size, "input");
    STRATA_CHECK(layout.count >= 0);
    STRATA_CHECK(layout.offset_bytes + layout.count * layout.bytes_per_token == size);
  } catch (const strata::DataError&) {  // a refusal is fine
  }
  return 0;
}
