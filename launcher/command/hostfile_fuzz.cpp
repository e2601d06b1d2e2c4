// Feeds arbitrary bytes to the parser of host files: it accepts or throws InvalidArgument, and what
// it accepts is safe as a word for ssh.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "launcher/command/host_list.h"

// Fault 28.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const strata::launcher::ListedHost& host : strata::launcher::parse_hostfile(text, "f")) {
      STRATA_CHECK(!host.name.empty() && host.name.front() != '-');
      STRATA_CHECK(host.name.find_first_of(" \t\n'\"$;|&<>()`\\") == std::string::npos);
      STRATA_CHECK(host.slots >= 0);
    }
  } catch (const strata::InvalidArgument&) {
  }
  return 0;
}
