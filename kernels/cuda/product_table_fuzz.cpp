// Checks that an accepted table of algorithms is the same after it was written and read back.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cuda/product_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  using namespace strata;
  if (size_bytes > std::size_t{1} << 20) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  try {
    const cuda::ProductTable table = cuda::product_table_from_json(text, "input");
    const std::string written = cuda::to_json(table);
    STRATA_CHECK(cuda::product_table_from_json(written, "written") == table, written);
  } catch (const DataError&) {  // input that is no table must be refused
  }
  return 0;
}
