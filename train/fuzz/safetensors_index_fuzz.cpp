// Reads an index of safetensors files; no accepted name may lead out of the folder.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "train/files/safetensors_index.h"

// Fault 26.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  try {
    for (const auto& entry : strata::train::parse_safetensors_index(text, "input")) {
      STRATA_CHECK(!entry.file.empty() && entry.file != "." && entry.file != "..");
      STRATA_CHECK(entry.file.find('/') == std::string::npos);
      STRATA_CHECK(entry.file.find('\0') == std::string::npos);
      STRATA_CHECK(entry.place.as_string() == entry.file);
    }
  } catch (const strata::DataError&) {  // a refusal is fine
  }
  return 0;
}
