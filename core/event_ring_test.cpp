#include "core/event_ring.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <thread>

namespace strata {
namespace {

using Kind = RankEvent::Kind;

std::unique_ptr<EventRing> empty_ring() { return std::make_unique<EventRing>(); }

std::vector<std::int64_t> numbers_of(const std::vector<RankEvent>& events) {
  std::vector<std::int64_t> numbers;
  for (const RankEvent& event : events) numbers.push_back(event.number);
  return numbers;
}

TEST(EventRing, HasTheLastEventsOfBothKindsInTheirOrder) {
  const auto ring = empty_ring();
  EXPECT_TRUE(ring->last(16).empty());
  ring->end(Kind::collective);
  EXPECT_TRUE(ring->last(16).empty()) << "nothing has begun";
  for (int i = 0; i < 100; ++i) {
    ring->begin(Kind::instruction, i, "linear");
    ring->end(Kind::instruction);
    if (i == 98) ring->begin(Kind::collective, 7, "gather layer.0");
  }
  ring->end(Kind::collective);
  EXPECT_EQ(numbers_of(ring->last(4)), (std::vector<std::int64_t>{97, 98, 7, 99}));
  EXPECT_EQ(ring->last(1000).size(), EventRing::kSlots + 1);
  const std::vector<RankEvent> events = ring->last(2);
  EXPECT_EQ(events[0].kind, Kind::collective);
  EXPECT_EQ(events[0].name, "gather layer.0");
  EXPECT_GE(events[0].ended_ns, events[0].begun_ns);
  EXPECT_GT(events[0].begun_ns, 0);
}

TEST(EventRing, KeepsWhatIsUnderWayHoweverMuchHasEndedSince) {
  const auto ring = empty_ring();
  ring->begin(Kind::collective, 18, "reduce layer4");
  for (int i = 0; i < 1000; ++i) {
    ring->begin(Kind::instruction, i, "linear");
    ring->end(Kind::instruction);
  }
  const std::vector<RankEvent> events = ring->last(3);
  EXPECT_EQ(numbers_of(events), (std::vector<std::int64_t>{18, 998, 999}));
  EXPECT_EQ(events[0].ended_ns, 0);
}

TEST(EventRing, WhatBeginsEndsTheOneBefore) {
  const auto ring = empty_ring();
  ring->begin(Kind::collective, 1, "a");
  ring->begin(Kind::instruction, 5, "b");
  ring->begin(Kind::collective, 2, "c");
  const std::vector<RankEvent> events = ring->last(16);
  ASSERT_EQ(events.size(), 3);
  EXPECT_NE(events[0].ended_ns, 0);
  EXPECT_EQ(events[1].ended_ns, 0) << "it is of the other kind";
  EXPECT_EQ(events[2].ended_ns, 0);
}

TEST(EventRing, CutsLongNamesAndShowsNoControlCharacters) {
  const auto ring = empty_ring();
  ring->begin(Kind::instruction, 1, std::string(500, 'x'));
  ring->begin(Kind::instruction, 2, "a\x1b[2Jb");
  const std::vector<RankEvent> events = ring->last(16);
  EXPECT_EQ(events[0].name, std::string(63, 'x'));
  EXPECT_EQ(events[1].name, "a?[2Jb");
}

TEST(EventRing, IsReadWhileItIsWritten) {
  const auto ring = empty_ring();
  std::jthread writer([&](const std::stop_token& stop) {
    for (std::int64_t i = 1; !stop.stop_requested(); ++i) ring->begin(Kind::instruction, i, "op");
  });
  for (std::uint64_t newest = 0; newest < 100'000;) {
    const std::vector<RankEvent> events = ring->last(EventRing::kSlots);
    for (const RankEvent& event : events)
      ASSERT_EQ(event.number, static_cast<std::int64_t>(event.order)) << "it is of two events";
    if (!events.empty()) newest = events.back().order;
  }
}

TEST(EventRing, DescribesEventsByTheirAge) {
  EXPECT_EQ(describe_events({}, 5), "");
  EXPECT_EQ(describe_events({{1, Kind::instruction, 340, "linear", 1'000'000'000, 1'500'000'000},
                             {2, Kind::collective, 18, "gather", 1'250'000'000, 0}},
                            3'000'000'000),
            "2.00 s ago  instruction 340 'linear', ended after 0.50 s\n"
            "1.75 s ago  collective 18 'gather', not ended");
  const std::int64_t never = std::numeric_limits<std::int64_t>::min();
  EXPECT_NE(describe_events({{1, Kind::instruction, 1, "", never, never}}, 5), "")
      << "a rank may write anything there";
}

}  // namespace
}  // namespace strata
