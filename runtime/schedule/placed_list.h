// Keeps placed lifetimes in order of place, and finds those that are held at given times.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/schedule/held_times.h"
#include "runtime/schedule/held_with.h"

namespace strata::runtime {

/// A list in blocks, so that adding moves little. A search compares the times of a whole block at
/// once and passes over lifetimes that leave no hole between them.
class PlacedList {
 public:
  void clear() {
    heads_.clear();
    blocks_.clear();
    added_.clear();
    listed_ = 0;
  }
  [[nodiscard]] std::int64_t size() const {
    return listed_ + static_cast<std::int64_t>(added_.size());
  }

  void add(const HeldTimes& times, std::int64_t bottom_bytes, std::int64_t bytes) {
    added_.push_back({{bottom_bytes, bottom_bytes + bytes}, times});
  }

  /// Calls meet(bottom, top) for ranges that hold all lifetimes held at the same time as `wanted`
  /// and no byte that is free, by their bottoms, until it returns true.
  template <typename Meet>
  void for_each_held(const HeldTimes& wanted, const Meet& meet) {
    for (; !added_.empty(); added_.pop_back()) list(added_.back());
    for (const Head& head : heads_) {
      if (head.first_begin >= wanted.end || head.last_end <= wanted.begin) continue;
      const Block& block = blocks_[head.block];
      const Bits held = held_with_(wanted, block.begins.data(), block.ends.data());
      if (held == 0) continue;
      const Bits taken = spread(held, head.same);
      // A range begins where the place before is free, or ends below.
      for (Bits begins = taken & ~head.same & ~((taken << 1) & head.linked); begins != 0;) {
        const int from = std::countr_zero(begins);
        begins &= begins - 1;
        const Bits rest = begins == 0 ? ~Bits{0} : (begins & -begins) - 1;  // below the next one
        if (meet(block.places[static_cast<std::size_t>(from)].bottom,
                 top_of(head, block, held & rest & (~Bits{0} << from))))
          return;
      }
    }
  }

 private:
  using Bits = std::uint64_t;  ///< one per lifetime of a block
  struct Place {
    std::int64_t bottom, top;  ///< bytes
    auto operator<=>(const Place&) const = default;
  };
  using Places = std::array<Place, kHeldBlock>;
  /// Has times of its own for each place; those of empty places are never held.
  struct Block {
    std::array<std::int32_t, kHeldBlock> begins, ends;
    Places places;
  };
  struct Head {
    Place first;  ///< the lowest place that was in the block when it was made, or lower
    std::size_t block, count;
    std::int32_t first_begin, last_end;
    // Compare a lifetime with the one before it in the block; the first one is neither.
    Bits same;    ///< it has the same place
    Bits linked;  ///< it begins where that one ends, or below
    Bits rises;   ///< it ends where all before it end, or above
  };
  struct Added {
    Place place;
    HeldTimes times;
  };

  /// Sets all bits of lifetimes that have the same place as one whose bit is set.
  static Bits spread(Bits bits, Bits same) {
    Bits up = same, down = same >> 1;
    for (int step = 1; (up | down) != 0; step *= 2) {  // ends: the first bit of `same` is 0
      bits |= (up & (bits << step)) | (down & (bits >> step));
      up &= up << step;
      down &= down >> step;
    }
    return bits;
  }

  static std::int64_t top_of(const Head& head, const Block& block, Bits held) {
    const int last = std::bit_width(held) - 1;
    std::int64_t top = block.places[static_cast<std::size_t>(last)].top;
    if ((head.rises >> last & 1) != 0) return top;
    for (; held != 0; held &= held - 1)
      top = std::max(top, block.places[static_cast<std::size_t>(std::countr_zero(held))].top);
    return top;
  }

  void list(const Added& added) {
    if (heads_.empty()) add_block(0);
    std::size_t at = block_of(added.place);
    if (heads_[at].count == kHeldBlock) {
      split(at);
      at = block_of(added.place);
    }
    Head& head = heads_[at];
    insert(head, blocks_[head.block], added.place, added.times);
    ++listed_;
  }

  void add_block(std::size_t at) {
    Head head{};
    head.first.bottom = std::numeric_limits<std::int64_t>::min();
    head.block = blocks_.size();
    heads_.insert(heads_.begin() + static_cast<std::ptrdiff_t>(at), head);
    Block& block = blocks_.emplace_back();
    block.begins.fill(kNeverHeld.begin);
    block.ends.fill(kNeverHeld.end);
    bound(heads_[at]);
  }

  /// Returns the last block that begins at or below `place`.
  [[nodiscard]] std::size_t block_of(const Place& place) const {
    const auto after =
        std::upper_bound(heads_.begin() + 1, heads_.end(), place,
                         [](const Place& p, const Head& head) { return p < head.first; });
    return static_cast<std::size_t>(after - heads_.begin()) - 1;
  }

  static void insert(Head& head, Block& block, const Place& place, const HeldTimes& times) {
    const auto end = block.places.begin() + static_cast<std::ptrdiff_t>(head.count);
    const auto at = std::upper_bound(block.places.begin(), end, place);
    const std::ptrdiff_t index = at - block.places.begin();
    const auto put = [&](auto& values, const auto& value) {
      const auto from = values.begin() + index;
      const auto to = values.begin() + static_cast<std::ptrdiff_t>(head.count);
      std::copy_backward(from, to, to + 1);
      *from = value;
    };
    put(block.places, place);
    put(block.begins, times.begin);
    put(block.ends, times.end);
    ++head.count;
    head.first_begin = std::min(head.first_begin, times.begin);
    head.last_end = std::max(head.last_end, times.end);
    describe_new(head, block.places, static_cast<std::size_t>(index));
  }

  /// Brings the bits up to date after a place was put at `index`.
  static void describe_new(Head& head, const Places& places, std::size_t index) {
    const Bits below = (Bits{1} << index) - 1;
    const auto shift = [&](Bits bits) { return (bits & below) | (bits & ~below) << 1; };
    head.same = shift(head.same);
    head.linked = shift(head.linked);
    head.rises = shift(head.rises);
    for (std::size_t i = std::max<std::size_t>(index, 1); i < std::min(index + 2, head.count); ++i)
      compare_with_last(head, places, i);
    const std::int64_t top = places[index].top;
    const Bits risen = head.rises & below;
    if (risen != 0 && places[static_cast<std::size_t>(std::bit_width(risen)) - 1].top > top) return;
    head.rises |= Bits{1} << index;
    // The tops of those that rise go up: the first that still does is followed by others.
    for (Bits above = head.rises & ~below & ~(Bits{1} << index); above != 0; above &= above - 1) {
      if (places[static_cast<std::size_t>(std::countr_zero(above))].top >= top) return;
      head.rises &= ~(above & -above);
    }
  }

  static void compare_with_last(Head& head, const Places& places, std::size_t i) {
    const Bits bit = Bits{1} << i;
    head.same = (head.same & ~bit) | Bits{places[i] == places[i - 1]} << i;
    head.linked = (head.linked & ~bit) | Bits{places[i].bottom <= places[i - 1].top} << i;
  }

  /// Moves the upper half of a full block to a new one after it.
  void split(std::size_t at) {
    add_block(at + 1);
    Head &lower = heads_[at], &upper = heads_[at + 1];
    Block &from = blocks_[lower.block], &to = blocks_[upper.block];
    constexpr std::size_t kHalf = kHeldBlock / 2;
    const auto move = [](auto& values, auto& moved, auto empty) {
      std::copy(values.begin() + kHalf, values.end(), moved.begin());
      std::fill(values.begin() + kHalf, values.end(), empty);
    };
    move(from.places, to.places, Place{});
    move(from.begins, to.begins, kNeverHeld.begin);
    move(from.ends, to.ends, kNeverHeld.end);
    lower.count = upper.count = kHalf;
    upper.first = to.places.front();
    bound(lower);
    bound(upper);
  }

  /// Describes a block whose places are new to it.
  void bound(Head& head) const {
    const Block& block = blocks_[head.block];
    head.first_begin = *std::min_element(block.begins.begin(), block.begins.end());
    head.last_end = *std::max_element(block.ends.begin(), block.ends.end());
    head.same = head.linked = 0;
    head.rises = head.count > 0 ? 1 : 0;
    std::int64_t top = block.places[0].top;
    for (std::size_t i = 1; i < head.count; ++i) {
      compare_with_last(head, block.places, i);
      top = std::max(top, block.places[i].top);
      head.rises |= Bits{block.places[i].top == top} << i;
    }
  }

  HeldWith held_with_ = held_with();
  std::vector<Head> heads_;    ///< in order of place
  std::vector<Block> blocks_;  ///< in order of when they were made
  std::int64_t listed_ = 0;    ///< lifetimes in blocks
  std::vector<Added> added_;   ///< lifetimes added since the last search
};

}  // namespace strata::runtime
