#include "core/shared_values.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata {
namespace {

using Outcome = ValueAnswer::Kind;

constexpr std::int64_t kMostMilliseconds = std::int64_t{365} * 24 * 3600 * 1000;

/// Removes from `waiting` those for which `is_meant` is true, and returns them.
template <typename Waiting, typename IsMeant>
std::vector<Waiting> taken_from(std::vector<Waiting>& waiting, const IsMeant& is_meant) {
  const auto rest = std::stable_partition(waiting.begin(), waiting.end(),
                                          [&](const Waiting& one) { return !is_meant(one); });
  std::vector<Waiting> taken(std::make_move_iterator(rest), std::make_move_iterator(waiting.end()));
  waiting.erase(rest, waiting.end());
  return taken;
}

}  // namespace

void SharedValues::begin() { *this = SharedValues(); }

std::vector<SharedValues::Answered> SharedValues::ask(TimePoint now, const std::string& host,
                                                      const ValueRequest& request) {
  if (request.is_put) return put(host, request);
  if (const auto found = values_.find(request.key); found != values_.end())
    return {{host, {request.id, Outcome::done, found->second}}};
  if (failure_) return {{host, {request.id, Outcome::failed, *failure_}}};
  const bool asks_again = std::ranges::any_of(
      waiting_, [&](const Waiting& one) { return one.host == host && one.id == request.id; });
  if (asks_again) return {};
  if (waiting_.size() >= kMostWaiting)
    return {{host, {request.id, Outcome::refused, "too many requests wait at once"}}};
  const auto timeout = std::clamp<std::int64_t>(request.timeout_ms, 0, kMostMilliseconds);
  waiting_.push_back({host, request.id, request.key, now + std::chrono::milliseconds(timeout)});
  return {};
}

std::vector<SharedValues::Answered> SharedValues::put(const std::string& host,
                                                      const ValueRequest& request) {
  const auto old = values_.find(request.key);
  const std::size_t freed = old == values_.end() ? 0 : request.key.size() + old->second.size();
  const std::size_t bytes = bytes_ - freed + request.key.size() + request.value.size();
  if (bytes > kMostBytes)
    return {{host, {request.id, Outcome::refused, "the rendezvous is full (64 MiB)"}}};
  bytes_ = bytes;
  values_[request.key] = request.value;
  std::vector<Answered> answers = answer_those_who_wait(request.key);
  answers.push_back({host, {request.id, Outcome::done, ""}});
  return answers;
}

std::vector<SharedValues::Answered> SharedValues::answer_those_who_wait(const std::string& key) {
  std::vector<Answered> answers;
  for (const Waiting& one : taken_from(waiting_, [&](const Waiting& w) { return w.key == key; }))
    answers.push_back({one.host, {one.id, Outcome::done, values_.at(key)}});
  return answers;
}

std::vector<SharedValues::Answered> SharedValues::expire(TimePoint now) {
  std::vector<Answered> answers;
  for (const Waiting& one : taken_from(waiting_, [&](const Waiting& w) { return w.until <= now; }))
    answers.push_back({one.host, {one.id, Outcome::timed_out, ""}});
  return answers;
}

std::vector<SharedValues::Answered> SharedValues::fail(const std::string& reason) {
  if (failure_) return {};
  failure_ = reason;
  std::vector<Answered> answers;
  for (const Waiting& one : std::exchange(waiting_, {}))
    answers.push_back({one.host, {one.id, Outcome::failed, reason}});
  return answers;
}

std::optional<SharedValues::TimePoint> SharedValues::next_deadline() const {
  const auto first = std::ranges::min_element(waiting_, {}, &Waiting::until);
  if (first == waiting_.end()) return {};
  return first->until;
}

}  // namespace strata
