// Results of system calls are checked in one place each.
#pragma once

#include <cstddef>
#include <string>

namespace strata {

/// Linux transfers at most 0x7ffff000 bytes per call; a multiple of every alignment below that.
inline constexpr std::size_t kMaxTransferBytes = std::size_t{1} << 30;

/// Throws HostError "what: <text of errno>".
[[noreturn]] void throw_system_error(const std::string& what);

/// `result` unless it is negative; then throws HostError that says what failed and why (errno).
template <typename Result>
Result checked(Result result, const char* what) {
  if (result < 0) throw_system_error(what);
  return result;
}

}  // namespace strata
