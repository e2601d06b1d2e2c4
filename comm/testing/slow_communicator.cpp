#include "comm/testing/slow_communicator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/clock.h"

namespace strata::comm {
namespace {

void sleep_until(std::int64_t ns) {
  const std::int64_t left = ns - monotonic_ns();
  if (left > 0)
    std::this_thread::sleep_until(std::chrono::steady_clock::now() +
                                  std::chrono::nanoseconds(left));
}

}  // namespace

std::int64_t SlowNetwork::collective_ns(int ranks, const Collective& collective) const {
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank)
    most = std::max(most, sent_bytes(Seat{rank, ranks, Exchange::none}, collective));
  return std::llround(
      1e9 * ((ranks - 1) * latency_seconds + static_cast<double>(most) / bytes_per_second));
}

void LastArrivals::arrive(std::int64_t number, std::int64_t now_ns) {
  std::atomic<std::int64_t>& last = of(number);
  for (std::int64_t before = last.load(); before < now_ns;)
    if (last.compare_exchange_weak(before, now_ns)) return;
}

void SlowCommunicator::execute(kernels::Stream& stream, const Collective& collective,
                               const std::byte* input, std::byte* output,
                               std::span<std::byte> workspace) {
  using enum CollectiveKind;
  if (collective.kind == send || collective.kind == receive)
    return inner_.run(stream, collective, input, output, workspace);
  const std::int64_t number = meetings_++;
  arrivals_.arrive(number, monotonic_ns());
  inner_.run(stream, collective, input, output, workspace);
  // A barrier has no partition.
  const std::int64_t takes_ns =
      collective.kind == barrier ? 0 : network_.collective_ns(size(), collective);
  sleep_until(arrivals_.last_ns(number) + takes_ns);
}

}  // namespace strata::comm
