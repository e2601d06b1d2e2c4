// Checks what is said about the memory to plan for.
#include <fmt/core.h>

#include "core/byte_size.h"
#include "train/config/resolver.h"

namespace strata::train {

void Resolver::check_target() {
  TargetOptions& target = options_.target;
  const bool wanted = given("target.memory") != nullptr;
  if (!wanted && given("target.strategy") != nullptr) target.memory = "auto";
  if (!wanted && target.memory.empty()) {
    if (const Given* unused = given("target.offload"))
      findings_.notes.push_back(unused->where +
                                ": accepted, unused: nothing is chosen without --target-memory");
    return;
  }
  const std::string where = given(wanted ? "target.memory" : "target.strategy")->where;
  if (target.memory != "auto") {
    const std::optional<std::int64_t> bytes = parse_byte_size(target.memory);
    if (!bytes || *bytes == 0 || *bytes == kUnlimitedMemory)
      problem(where, fmt::format("found '{}', expected an amount of memory such as 24GB (GB is "
                                 "1e9 bytes, GiB 2^30), or auto for what is free",
                                 target.memory));
  }
  const auto excludes = [&](const char* option, const std::string& why) {
    if (const Given* other = given(option))
      problem(where, fmt::format("cannot be combined with {}: {}", other->where, why));
  };
  excludes("plan", "a Plan from a file is run as it is");
  excludes("offload.device_memory_bytes",
           "it limits the arena alone, and the target all memory of the device; give one of them");
}

}  // namespace strata::train
