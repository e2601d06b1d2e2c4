// Fuzzes the reader of profiles: an accepted text must be the same after writing and reading.
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "machine/profile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  using namespace strata::machine;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  std::optional<Profile> profile;
  try {
    (void)is_of_earlier_version(text, "input");
    profile = read_profile(text, "input");
  } catch (const strata::DataError&) {  // refusing is allowed
  }
  if (profile)
    STRATA_CHECK(read_profile(to_json(*profile), "written") == *profile, to_json(*profile));
  return 0;
}
