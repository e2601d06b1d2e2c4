// Calls a function for several items at the same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace strata {

/// Returns what `make` returns for 0 to count - 1, in this order, however many threads make them:
/// as many as the process has cores, the caller's among them. `make` must be callable from several
/// threads at once; what one call changes, no other may depend on. Throws what the call for the
/// smallest number threw, of those that threw; all calls have ended by then.
template <typename Make>
[[nodiscard]] auto all_at_once(std::size_t count, const Make& make) {
  using Made = decltype(make(std::size_t{}));
  struct Slot {
    std::optional<Made> made;
    std::exception_ptr error;
  };
  std::vector<Slot> slots(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        slots[i].made.emplace(make(i));
      } catch (...) {
        slots[i].error = std::current_exception();
      }
    }
  };
  {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < std::min(count, cores)) others.emplace_back(work);
    } catch (const std::system_error&) {  // there are no more threads: those that are do the work
    }
    work();
  }
  std::vector<Made> all;
  all.reserve(count);
  for (Slot& slot : slots) {
    if (slot.error) std::rethrow_exception(slot.error);
    all.push_back(std::move(*slot.made));
  }
  return all;
}

}  // namespace strata
