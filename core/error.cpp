#include "core/error.h"

#include <cstring>

namespace strata {

OutOfMemory::OutOfMemory(const std::string& tier, std::uint64_t asked_bytes,
                         std::uint64_t free_bytes, const std::string& advice)
    : HostError("out of memory in tier '" + tier + "': asked for " + std::to_string(asked_bytes) +
                " bytes, free " + std::to_string(free_bytes) + "; " + advice) {}

IoError::IoError(const std::string& path, std::uint64_t offset_bytes,
                 const std::string& what_failed, int error_number)
    : Error(ExitCode::io,
            path + (offset_bytes > 0 ? " at byte " + std::to_string(offset_bytes) : std::string()) +
                ": " + what_failed +
                (error_number != 0 ? std::string(": ") + std::strerror(error_number)
                                   : std::string())) {}

}  // namespace strata
