// Checked results of system calls.
#pragma once

#include <cstddef>
#include <string>

namespace strata {

/// Most bytes per read or write, a multiple of all alignments; Linux takes up to 0x7ffff000.
inline constexpr std::size_t kMaxTransferBytes = std::size_t{1} << 30;

/// Throws HostError "what: <text of errno>".
[[noreturn]] void throw_system_error(const std::string& what);

/// Returns `result` unless it is negative; then throws HostError with `what` and the text of errno.
template <typename Result>
Result checked(Result result, const char* what) {
  if (result < 0) throw_system_error(what);
  return result;
}

}  // namespace strata
