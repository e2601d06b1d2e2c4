// A pool of objects that are used again, so that a step allocates nothing.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace strata::offload {

/// Owns all objects it ever made; their addresses do not change. Not thread-safe.
template <typename Object>
class Pool {
 public:
  /// Returns an object that is not in use, as its last user left it, or a new one.
  Object& take() {
    if (free_.empty()) {
      Object& made = objects_.emplace_back();
      free_.reserve(objects_.size());  // so that give does not allocate
      return made;
    }
    Object& object = *free_.back();
    free_.pop_back();
    return object;
  }
  void give(Object& object) { free_.push_back(&object); }

  /// Objects in the order in which they were made.
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  Object& operator[](std::size_t index) { return objects_[index]; }

 private:
  std::deque<Object> objects_;
  std::vector<Object*> free_;
};

}  // namespace strata::offload
