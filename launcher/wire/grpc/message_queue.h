// Messages that wait for the one write that gRPC lets a stream have at a time.
#pragma once

#include <deque>
#include <utility>

namespace strata::launcher {

/// The caller guards it with a mutex, and holds that while it starts a write.
template <typename Message>
class MessageQueue {
 public:
  /// Returns the message to write now; null: a write is under way, and this one's turn comes.
  const Message* push(Message message) {
    messages_.push_back(std::move(message));
    return messages_.size() == 1 ? &messages_.front() : nullptr;
  }
  /// The write that was under way is done; returns the next message to write, or null.
  const Message* written() {
    messages_.pop_front();
    return messages_.empty() ? nullptr : &messages_.front();
  }
  [[nodiscard]] bool empty() const { return messages_.empty(); }

 private:
  std::deque<Message> messages_;  ///< the first one is being written
};

}  // namespace strata::launcher
