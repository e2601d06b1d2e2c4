#include "launcher/control/testing/network.h"

#include <algorithm>
#include <utility>

namespace strata::launcher::simulation {

using std::chrono::milliseconds;
using std::chrono::seconds;

Network::Network(EventQueue& queue, Draws& draws, NetworkTraits traits,
                 std::deque<SimulatedHost>& hosts, SimulatedHost& coordinator_host)
    : queue_(queue),
      draws_(draws),
      traits_(traits),
      hosts_(hosts),
      coordinator_host_(coordinator_host),
      cut_until_(hosts.size()) {}

void Network::stop_serving() {
  coordinator_ = nullptr;
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (!streams_[i].is_broken) break_stream(static_cast<int>(i));
}

bool Network::can_connect(int host) const {
  const auto& until = cut_until_[static_cast<std::size_t>(host)];
  return coordinator_ != nullptr && std::ranges::max(until) <= queue_.now();
}

int Network::connect(int host, const std::string& agent, AgentEnd& end) {
  streams_.push_back({.coordinator = number_, .host = host, .agent = agent, .end = &end});
  return static_cast<int>(streams_.size()) - 1;
}

void Network::send(int stream, const AgentMessage& message) {
  if (at(stream).is_broken) return;
  deliver(stream, to_coordinator, [this, stream, message] { arrive(stream, message); });
}

void Network::arrive(int stream, const AgentMessage& message) {
  coordinator_host_.when_it_runs([this, stream, message] {
    Stream& s = at(stream);
    if (s.coordinator == number_ && !s.coordinator_knows && coordinator_ != nullptr)
      hear(s, message);
  });
}

/// A request is never heard before the Hello of its stream: there would be no way for its answer,
/// and nobody would ask again.
void Network::hear(Stream& stream, const AgentMessage& message) {
  stream.is_heard = stream.is_heard || std::holds_alternative<Hello>(message);
  if (!stream.is_heard && std::holds_alternative<StoreRequest>(message)) {
    stream.early.push_back(message);
    return;
  }
  coordinator_->hear(host_of(stream).name(), stream.agent, message);
  if (!stream.is_heard) return;
  for (const AgentMessage& early : std::exchange(stream.early, {}))
    coordinator_->hear(host_of(stream).name(), stream.agent, early);
}

void Network::send(const std::string& host, const std::string& agent,
                   const CoordinatorMessage& message) {
  const int stream = newest_heard(host, agent);
  if (stream < 0 || at(stream).is_broken) return;
  deliver(stream, to_agent, [this, stream, message] {
    host_of(at(stream)).when_it_runs([this, stream, message] {
      const Stream& s = at(stream);
      if (!s.agent_knows) s.end->hear(s.coordinator, message);
    });
  });
}

void Network::deliver(int stream, Direction direction, const Callback& callback) {
  const Time first = arrival(at(stream), direction);
  if (first - queue_.now() >= kForever / 2) return;
  queue_.at(first, callback);
  if (draws_.chance(traits_.twice_percent))
    queue_.at(first + draws_.between(Duration(0),
                                     draws_.chance(50) ? milliseconds(300) : milliseconds(20'000)),
              callback);
}

Time Network::arrival(Stream& stream, Direction direction) {
  Duration delay = draws_.between(Duration(0), traits_.longest_delay);
  if (draws_.chance(traits_.slow_percent)) delay += draws_.between(Duration(0), seconds(1));
  const Time cut = cut_until_[static_cast<std::size_t>(stream.host)][direction];
  Time& last = stream.last_arrival[direction];
  const Time in_order = std::max(std::max(queue_.now(), cut) + delay, last);
  if (!draws_.chance(traits_.reordered_percent)) return last = in_order;
  return in_order +
         draws_.between(Duration(0), draws_.chance(90) ? milliseconds(500) : milliseconds(20'000));
}

/// What is on its way when a stream breaks may still arrive until its end knows.
void Network::break_stream(int stream) {
  Stream& s = at(stream);
  if (s.is_broken) return;
  s.is_broken = true;
  queue_.after(draws_.between(Duration(0), milliseconds(1500)), [this, stream] {
    host_of(at(stream)).when_it_runs([this, stream] {
      at(stream).agent_knows = true;
      at(stream).end->stream_broke(stream);
    });
  });
  queue_.after(draws_.between(Duration(0), milliseconds(1500)),
               [this, stream] { tell_coordinator(stream); });
}

void Network::break_streams_of(int host) {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].host == host) break_stream(static_cast<int>(i));
}

void Network::leave(int stream, Duration notice) {
  at(stream).agent_knows = true;
  if (at(stream).is_broken) return;
  at(stream).is_broken = true;
  queue_.after(draws_.between(Duration(0), notice), [this, stream] { tell_coordinator(stream); });
}

/// A stream's end is the coordinator's concern unless the agent has come again on a newer one.
void Network::tell_coordinator(int stream) {
  coordinator_host_.when_it_runs([this, stream] {
    Stream& s = at(stream);
    s.coordinator_knows = true;
    if (coordinator_ == nullptr || newest_heard(host_of(s).name(), s.agent) != stream) return;
    coordinator_->stream_broke(host_of(s).name(), s.agent);
  });
}

void Network::cut(int host, Direction direction, Duration lasts) {
  Time& until = cut_until_[static_cast<std::size_t>(host)][direction];
  until = std::max(until, queue_.now() + lasts);
  const Duration patience = draws_.between(seconds(1), seconds(20));
  if (patience < lasts) queue_.after(patience, [this, host] { break_streams_of(host); });
}

/// Returns -1 if there is none to the coordinator of now.
int Network::newest_heard(const std::string& host, const std::string& agent) const {
  for (std::size_t i = streams_.size(); i-- > 0;)
    if (streams_[i].coordinator == number_ && streams_[i].is_heard && streams_[i].agent == agent &&
        host_of(streams_[i]).name() == host)
      return static_cast<int>(i);
  return -1;
}

SimulatedHost& Network::host_of(const Stream& stream) const {
  return hosts_[static_cast<std::size_t>(stream.host)];
}

}  // namespace strata::launcher::simulation
