// Parses strictly and leniently; what is accepted must read back the same after it is written.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "core/json.h"
#include "core/json_writer.h"

namespace strata {
namespace {

constexpr std::int64_t kLimitBytes = 1 << 20;

void check_round_trip(std::string_view text, const JsonOptions& options) {
  try {
    const std::string written = to_string(parse_json(text, "input", options), 0);
    // Escapes make a text at most six times longer.
    JsonOptions strict;
    strict.size_limit_bytes = 6 * kLimitBytes + 64;
    STRATA_CHECK(to_string(parse_json(written, "written", strict), 0) == written, written);
  } catch (const DataError&) {  // a refusal is fine
  }
}

}  // namespace
}  // namespace strata

// Fault 27.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  strata::JsonOptions options;
  options.size_limit_bytes = strata::kLimitBytes;
  strata::check_round_trip(text, options);
  options.allow_comments = options.allow_trailing_commas = true;
  strata::check_round_trip(text, options);
  return 0;
}
