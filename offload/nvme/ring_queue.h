// A first-in, first-out queue in one array that only grows.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace strata::offload {

template <typename Value>
class RingQueue {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t size() const { return count_; }

  void push(Value value) {
    if (count_ == values_.size()) grow();
    values_[(first_ + count_++) % values_.size()] = std::move(value);
  }
  /// The queue must not be empty.
  Value pop() {
    Value value = std::move(values_[first_]);
    first_ = (first_ + 1) % values_.size();
    --count_;
    return value;
  }
  void clear() { first_ = count_ = 0; }

 private:
  void grow() {
    std::vector<Value> larger(values_.empty() ? 16 : values_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i)
      larger[i] = std::move(values_[(first_ + i) % values_.size()]);
    values_ = std::move(larger);
    first_ = 0;
  }

  std::vector<Value> values_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace strata::offload
