// Results of system calls are checked in one place each.
#pragma once

#include <string>

namespace strata {

/// Throws HostError "what: <text of errno>".
[[noreturn]] void throw_system_error(const std::string& what);

/// `result` unless it is negative; then throws HostError that says what failed and why (errno).
template <typename Result>
Result checked(Result result, const char* what) {
  if (result < 0) throw_system_error(what);
  return result;
}

}  // namespace strata
