#include "core/event_ring.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/clock.h"
#include "core/shown_text.h"

namespace strata {

void EventRing::begin(RankEvent::Kind kind, std::int64_t number, std::string_view name) {
  Row& row = this->row(kind);
  const std::int64_t now = coarse_monotonic_ns();
  const std::uint64_t index = row.count.load(std::memory_order_relaxed);
  if (index > 0) {
    Slot& before = row.slots[(index - 1) % kSlots];
    if (before.ended_ns.load(std::memory_order_relaxed) == 0)
      before.ended_ns.store(now, std::memory_order_release);
  }
  Slot& slot = row.slots[index % kSlots];
  // Whoever sees one of the new values sees the 0, too: ThreadSanitizer knows no fences.
  slot.order.store(0, std::memory_order_relaxed);
  slot.number.store(number, std::memory_order_release);
  slot.begun_ns.store(now, std::memory_order_release);
  slot.ended_ns.store(0, std::memory_order_release);
  const std::size_t length = std::min(name.size(), slot.name.size() - 1);
  std::memcpy(slot.name.data(), name.data(), length);
  slot.name[length] = '\0';
  slot.order.store(count_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
  row.count.store(index + 1, std::memory_order_relaxed);
}

void EventRing::end(RankEvent::Kind kind) {
  Row& row = this->row(kind);
  const std::uint64_t count = row.count.load(std::memory_order_relaxed);
  if (count == 0) return;
  std::atomic<std::int64_t>& ended = row.slots[(count - 1) % kSlots].ended_ns;
  if (ended.load(std::memory_order_relaxed) == 0)
    ended.store(coarse_monotonic_ns(), std::memory_order_release);
}

std::vector<RankEvent> EventRing::last(std::size_t count) const {
  std::vector<RankEvent> events;
  for (const RankEvent::Kind kind : {RankEvent::Kind::instruction, RankEvent::Kind::collective}) {
    for (const Slot& slot : rows_[static_cast<std::size_t>(kind)].slots) {
      RankEvent event{.order = slot.order.load(std::memory_order_acquire),
                      .kind = kind,
                      .number = slot.number.load(std::memory_order_acquire),
                      .name = shown_text(slot.name),
                      .begun_ns = slot.begun_ns.load(std::memory_order_acquire),
                      .ended_ns = slot.ended_ns.load(std::memory_order_acquire)};
      if (event.order != 0 && slot.order.load(std::memory_order_relaxed) == event.order)
        events.push_back(std::move(event));
    }
  }
  std::ranges::sort(events, {}, &RankEvent::order);
  std::size_t too_many = events.size() > count ? events.size() - count : 0;
  std::erase_if(events, [&](const RankEvent& event) {
    if (too_many == 0 || event.ended_ns == 0) return false;
    --too_many;
    return true;
  });
  return events;
}

std::string describe_events(const std::vector<RankEvent>& events, std::int64_t now_ns) {
  const auto seconds = [](std::int64_t from, std::int64_t to) {
    return 1e-9 * (static_cast<double>(to) - static_cast<double>(from));
  };
  std::string text;
  for (const RankEvent& event : events)
    text += fmt::format(
        "{}{:.2f} s ago  {} {} '{}', {}", text.empty() ? "" : "\n", seconds(event.begun_ns, now_ns),
        event.kind == RankEvent::Kind::collective ? "collective" : "instruction", event.number,
        event.name,
        event.ended_ns == 0
            ? "not ended"
            : fmt::format("ended after {:.2f} s", seconds(event.begun_ns, event.ended_ns)));
  return text;
}

}  // namespace strata
