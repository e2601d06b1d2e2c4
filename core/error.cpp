#include "core/error.h"

#include <fmt/core.h>
#include <cstring>

namespace strata {

OutOfMemory::OutOfMemory(const std::string& tier, std::uint64_t asked_bytes,
                         std::uint64_t free_bytes, const std::string& advice)
    : HostError(fmt::format("out of memory in tier '{}': asked for {} bytes, free {}; {}", tier,
                            asked_bytes, free_bytes, advice)) {}

IoError::IoError(const std::string& path, std::uint64_t offset_bytes,
                 const std::string& what_failed, int error_number)
    : Error(ExitCode::io,
            path + (offset_bytes > 0 ? fmt::format(" at byte {}", offset_bytes) : std::string()) +
                ": " + what_failed +
                (error_number != 0 ? std::string(": ") + std::strerror(error_number)
                                   : std::string())) {}

}  // namespace strata
