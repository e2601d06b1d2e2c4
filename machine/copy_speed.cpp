#include "machine/copy_speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "core/aligned_memory.h"
#include "kernels/cpu/thread_pool.h"

namespace strata::machine {
namespace {

constexpr int kPasses = 5;

/// Returns the bytes per second of the fastest pass.
double best_rate(double bytes, const std::function<void()>& pass) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int i = 0; i < kPasses; ++i) {
    const Clock::time_point begin = Clock::now();
    pass();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, bytes / std::max(seconds, 1e-9));
  }
  return best;
}

}  // namespace

double host_copy_rate(int threads, std::int64_t bytes) {
  const AlignedMemory from(bytes), to(bytes);
  kernels::ThreadPool pool(threads);
  const auto size = static_cast<std::size_t>(bytes);
  const auto parts = static_cast<std::size_t>(threads);
  return best_rate(2.0 * static_cast<double>(bytes), [&] {
    pool.parallel_for(threads, [&](std::int64_t task, int) {
      const std::size_t begin = size * static_cast<std::size_t>(task) / parts;
      const std::size_t end = size * static_cast<std::size_t>(task + 1) / parts;
      std::memcpy(to.bytes().data() + begin, from.bytes().data() + begin, end - begin);
    });
  });
}

Link measure_links(kernels::Device& device, std::int64_t bytes) {
  device.bind_thread();
  // Each direction has a half of the device's memory, so that both at once share nothing.
  const std::int64_t half = bytes / 2;
  const auto on_device = device.allocate(kernels::MemoryKind::device, 2 * half);
  const auto sent = device.allocate(kernels::MemoryKind::pinned, half);
  const auto received = device.allocate(kernels::MemoryKind::pinned, half);
  device.clear_now(on_device->base(), 2 * half);
  device.clear_now(sent->base(), half);
  const auto up = device.make_stream();
  const auto down = device.make_stream();
  const auto start_up = [&] { device.copy(*up, on_device->base(), sent->base(), half); };
  const auto start_down = [&] {
    device.copy(*down, received->base(), on_device->base() + half, half);
  };
  Link rates;
  const auto moved = static_cast<double>(half);
  rates.to_device = measured(best_rate(moved, [&] {
    start_up();
    device.synchronize(*up);
  }));
  rates.to_host = measured(best_rate(moved, [&] {
    start_down();
    device.synchronize(*down);
  }));
  rates.both_ways = measured(best_rate(2 * moved, [&] {
    start_up();
    start_down();
    device.synchronize(*up);
    device.synchronize(*down);
  }));
  return rates;
}

}  // namespace strata::machine
