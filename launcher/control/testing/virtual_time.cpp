#include "launcher/control/testing/virtual_time.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace strata::launcher::simulation {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

/// Returns `ns` times `numerator` / `denominator`, rounded down, without overflow.
std::int64_t scale(std::int64_t ns, std::int64_t numerator, std::int64_t denominator) {
  return ns / denominator * numerator + ns % denominator * numerator / denominator;
}

}  // namespace

bool EventQueue::is_later(const Entry& a, const Entry& b) {
  return a.time != b.time ? a.time > b.time : a.number > b.number;
}

void EventQueue::at(Time time, Callback callback) {
  STRATA_CHECK(time >= now_);
  heap_.push_back({time, added_++, std::move(callback)});
  std::ranges::push_heap(heap_, is_later);
}

void EventQueue::run_next() {
  std::ranges::pop_heap(heap_, is_later);
  const Entry next = std::move(heap_.back());
  heap_.pop_back();
  now_ = next.time;
  next.callback();
}

Time HostClock::read(Time now) const {
  const std::int64_t ns = now.time_since_epoch().count();
  return Time(offset + Duration(scale(ns, kMillion + parts_per_million, kMillion)));
}

Time HostClock::when(Time local) const {
  const std::int64_t ns = (local.time_since_epoch() - offset).count();
  Time time{Duration(scale(ns, kMillion, kMillion + parts_per_million))};
  while (read(time) < local) time += Duration(1);
  return time;
}

}  // namespace strata::launcher::simulation
