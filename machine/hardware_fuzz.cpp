// Fuzzes the reader of hardware files: an accepted text must be the same after writing and reading.
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "machine/hardware_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  using namespace strata::machine;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  std::optional<Machine> machine;
  try {
    machine = read_hardware(text, "input");
  } catch (const strata::ConfigError&) {  // refusing is allowed
  }
  if (machine)
    STRATA_CHECK(read_hardware(to_json(*machine), "written") == *machine, to_json(*machine));
  return 0;
}
