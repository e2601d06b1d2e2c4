// Fuzzes the replaced figures of --hardware: what is accepted must be a legal hardware file.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "machine/hardware_file.h"
#include "machine/hardware_override.h"
#include "machine/hardware_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  using namespace strata::machine;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  for (const char* name : {"rtx4090", "two-cores", "16x8xh100"}) {
    Machine machine = find_hardware(name).value();
    try {
      override_hardware(machine, text, "input");
    } catch (const strata::ConfigError&) {  // refusing is allowed
      continue;
    }
    STRATA_CHECK(read_hardware(to_json(machine), "written") == machine, to_json(machine));
  }
  std::size_t parts = 0;
  for (const std::string& part : split_hardware_list(text)) parts += part.size();
  STRATA_CHECK(parts <= text.size(), parts);
  return 0;
}
