// Broken invariants: print what and where, then end the process so that peers notice (a rank that
// unwinds through pending collectives would leave the others waiting).
#pragma once

#include <cstdlib>
#include <iostream>

namespace strata::detail {

template <typename... Values>
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const Values&... values) {
  std::cerr << file << ':' << line << ": broken invariant: " << condition;
  ((std::cerr << ' ' << values), ...);
  std::cerr << std::endl;
  std::abort();
}

}  // namespace strata::detail

/// Ends the process if `condition` is false, in release builds too; prints the further arguments.
#define STRATA_CHECK(condition, ...)                                                             \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::strata::detail::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
