#include "comm/arena_table.h"

#include <fmt/core.h>
#include <functional>
#include <string>

#include "core/check.h"

namespace strata::comm {

int ArenaTable::add(const ArenaRegion& region) {
  if (region.base == nullptr || region.bytes <= 0)
    throw InvalidArgument(
        fmt::format("an arena of {} bytes cannot be registered; every rank needs a non-empty one",
                    region.bytes));
  regions_.push_back(region);
  return static_cast<int>(regions_.size()) - 1;
}

int ArenaTable::remove(const std::byte* base) {
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (base == nullptr || regions_[i].base != base) continue;
    regions_[i] = {};
    return static_cast<int>(i);
  }
  STRATA_CHECK(false, "no arena is registered at", static_cast<const void*>(base));
  return -1;
}

ArenaPlace ArenaTable::locate(const void* operand, std::int64_t bytes, std::string_view collective,
                              const char* role) const {
  if (bytes == 0) return {};
  const auto* address = static_cast<const std::byte*>(operand);
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const ArenaRegion& region = regions_[i];
    if (region.base == nullptr || std::less<>{}(address, region.base)) continue;
    const std::int64_t offset = address - region.base;
    if (offset <= region.bytes && bytes <= region.bytes - offset)
      return {static_cast<std::int32_t>(i), offset};
  }
  STRATA_CHECK(false, collective, role, "of", bytes, "bytes at", operand,
               "lies in no registered arena");
  return {};
}

OperandBytes ArenaTable::check_operands(const Collective& collective, int rank,
                                        const std::byte* input, const std::byte* output) const {
  const OperandBytes bytes = operand_bytes(collective, rank);
  char text[kDescriptionBytes];
  const std::string_view what = describe_into(collective, text);
  static_cast<void>(locate(input, bytes.input, what, "input"));
  static_cast<void>(locate(output, bytes.output, what, "output"));
  return bytes;
}

}  // namespace strata::comm
