// Which hosts take part in a run: their agents come, are followed by others, and leave.
#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "launcher/control/coordinator.h"
#include "launcher/control/ending.h"

namespace strata::launcher {
namespace {

constexpr const char* kAnotherCame = "another mlaunch has come as this host";

/// Returns "gpu-07 at 10.0.0.2", or what there is of it.
std::string joined(const std::string& name, const std::string& address) {
  if (name.empty() || address.empty()) return name + address;
  return name + " at " + address;
}

}  // namespace

void Coordinator::hear(Host& host, const Hello& hello) {
  if (host.former.contains(hello.agent)) return dismiss(host, hello.agent, kAnotherCame);
  const bool is_another = !host.agent.empty() && host.agent != hello.agent;
  if (!is_another || !may_have_ranks(host)) return adopt(host, hello);
  if (host.successor && host.successor->agent != hello.agent)
    dismiss(host, host.successor->agent, kAnotherCame);
  host.successor = hello;
  if (is_in_attempt(host) && !host.is_over)
    lose(host, "its mlaunch has ended, and another one has come");
}

/// The agent is dead, or believed to be, or has been told to end: it is never heard again.
void Coordinator::dismiss(Host& host, const std::string& agent, const std::string& why) {
  host.former.insert(agent);
  actions_.emplace_back(SendToAgent{host.name, agent, Dismiss{kTryAgain, why}});
}

void Coordinator::adopt(Host& host, const Hello& hello) {
  if (host.agent != hello.agent) {
    if (!host.agent.empty()) dismiss(host, host.agent, kAnotherCame);
    host.is_leaving = host.has_left = false;
    // Its first heartbeat says whether it has: of an earlier coordinator that died.
    host.has_ranks = hello.has_had_ranks;
    host.beat = -1;
  }
  if (host.successor && host.successor->agent == hello.agent) host.successor.reset();
  host.agent = hello.agent;
  host.host_name = hello.host_name;
  host.address = hello.address;
  host.newest = hello.newest;
  newest_ = std::max(newest_, hello.newest);
  host.slots = hello.slots;
  host.connected = true;
  host.is_given_up = host.is_spare_said = false;
  host.broke.reset();
  note_life(host);
  strangers_.erase(host.address);
  std::erase_if(refused_, [&](const HostRefused& refused) {
    return refused.host == host.name && refused.host_name == host.host_name;
  });
}

/// One that was there is known by its connection.
void Coordinator::on(const HostCannotCome& event) {
  Host* host = find(event.host);
  if (host == nullptr || !host->agent.empty() || state_ != State::gathering) return;
  if (std::exchange(host->is_given_up, true)) return;  // it was said
  actions_.emplace_back(
      Announce{fmt::format("host {} cannot take part: {}", shown(*host), event.reason)});
}

/// This coordinator was started in place of one that has died, with something else: hosts with
/// ranks of that one's run lose nothing if it ends, and have nobody to go on with while it holds
/// the port.
void Coordinator::give_way_to(const HostRefused& host) {
  actions_.emplace_back(Announce{fmt::format(
      "host {} ({}) has had ranks of a run that does not go on with this mlaunch: {}. This one "
      "ends, and that host waits: start it again with that host's command, or end the mlaunch of "
      "that host before another run begins here",
      host.host, joined(host.host_name, host.address), host.why)});
  finish(static_cast<int>(ExitCode::configuration));
}

/// Says once why a host is refused, however often it tries or is started again.
void Coordinator::on(const HostRefused& event) {
  if (event.is_of_earlier_run && state_ == State::gathering && attempt() < 0)
    return give_way_to(event);
  const auto known = std::ranges::find_if(refused_, [&](const HostRefused& one) {
    return one.host == event.host && one.host_name == event.host_name &&
           one.address == event.address;
  });
  if (known != refused_.end() && known->why == event.why) return;
  if (known != refused_.end()) refused_.erase(known);
  if (refused_.size() == kMostRefused) refused_.pop_front();
  refused_.push_back(event);
  actions_.emplace_back(Announce{fmt::format("host {} ({}) may not take part: {}", event.host,
                                             joined(event.host_name, event.address), event.why)});
}

std::string Coordinator::why_strangers_are_refused() const {
  if (settings_.secret_file.empty())
    return "it has another secret; this run's is known to the hosts that this mlaunch starts alone";
  return fmt::format(
      "its secret is not the one in {}; compare its --run-secret file with that, and give all "
      "hosts the same",
      settings_.secret_file);
}

/// Says it once of an address, and of few: anybody may come.
void Coordinator::on(const StrangerRefused& event) {
  if (strangers_.size() >= kMostRefused || !strangers_.insert(event.address).second) return;
  actions_.emplace_back(Announce{fmt::format("a host at {} may not take part: {}", event.address,
                                             why_strangers_are_refused())});
}

/// Says why hosts were refused that might be the missing ones: "; a host at 10.0.0.2 may not take
/// part: ...".
std::string Coordinator::why_refused() const {
  std::string text;
  for (const HostView& host : hosts()) {
    if (host.state != kIsRefused) continue;
    const std::string who = host.number.empty() ? "a host at " + host.address
                                                : fmt::format("host {} ({})", host.number,
                                                              joined(host.name, host.address));
    text += fmt::format("; {} may not take part: {}", who, host.why);
  }
  return text;
}

/// True if too few hosts would be let in even if all that have not come did: others were refused
/// for what does not go away by itself. Who was refused without the number of a host is taken for
/// one of those that miss; a stranger may be anybody. A host that was let in may come back, and a
/// run that has had ranks may have them again: who was refused was none of these.
bool Coordinator::would_be_refused_again() const {
  if (attempt() >= 0 || newest_ >= 0) return false;
  const auto stays = [](const HostRefused& one) { return one.exit_code != kTryAgain; };
  std::ptrdiff_t missing = 0, refused = 0;
  for (const Host& host : hosts_) {
    if (!host.former.empty() || !host.agent.empty()) continue;  // it was let in
    ++missing;
    if (!is_refused(host)) continue;
    refused += stays(*std::ranges::find(refused_, host.name, &HostRefused::host)) ? 1 : 0;
  }
  const auto of_no_host = std::ranges::count_if(refused_, [&](const HostRefused& one) {
    return stays(one) && std::ranges::find(hosts_, one.host, &Host::name) == hosts_.end();
  });
  refused += std::min(missing - refused, of_no_host);
  return refused > 0 && std::ssize(hosts_) - refused < settings_.least_hosts;
}

/// Takes a signal to one host as one to the whole run, unless that host may leave alone.
void Coordinator::hear(Host& host, const SignalCame& came) {
  const std::string source = host.name + "/" + host.agent;
  if (!signal_filter_.is_news(source, came.number, came.index) || let_leave(host, came.number))
    return;
  if (!signal_filter_.is_first(now_, source, came.number)) return;
  actions_.emplace_back(
      Announce{fmt::format("host {} got {}", shown(host), signal_name(came.number))});
  take_signal(came.number);
}

/// Lets a host that is told to end leave alone, if the run can do without it: a spare at once, one
/// with ranks once these have saved. Ranks save and stop at SIGUSR1 only if they have said so.
bool Coordinator::let_leave(Host& host, int number) {
  const bool has_part = is_in_attempt(host) && state_ != State::gathering;
  if (state_ == State::running && !has_part && ends_the_run(number)) {
    send_away(host, "it was a spare, and has been told to end");
    return true;
  }
  if (number != SIGTERM || asked_to_stop_) return false;
  if (host.is_leaving) {
    hasten_leave(host);
    return true;
  }
  const auto ranks = place_without(host);
  if (!ranks || (state_ == State::running && !worlds_.may_grow())) return false;
  const int world = std::accumulate(ranks->begin(), ranks->end(), 0);
  actions_.emplace_back(Announce{fmt::format(
      "host {} got SIGTERM: it leaves, and the run goes on as {} rank{} on the "
      "other hosts{}",
      shown(host), world, world == 1 ? "" : "s", has_part ? " once all have saved" : "")});
  host.is_leaving = true;
  if (!has_part)
    send_leaving_away();
  else if (state_ == State::running && !std::exchange(is_regrouping_, true))
    signal_ranks(SIGUSR1);
  return true;
}

/// A second word to a host that leaves: its ranks, and so all, end now. Saving may take too long.
void Coordinator::hasten_leave(const Host& host) {
  if (state_ != State::running) return;
  const std::string reason =
      fmt::format("host {} got SIGTERM again: the ranks end without saving", shown(host));
  actions_.emplace_back(Announce{reason});
  is_hastened_ = true;
  stop_ranks(reason);
}

/// Returns the ranks of the other hosts that are there; nullopt: the run cannot do without it.
std::optional<std::vector<int>> Coordinator::place_without(const Host& host) {
  if (!can_do_without_some()) return {};
  std::vector<Host*> others;
  for (Host& other : hosts_)
    if (&other != &host && has_lease(other) && !other.is_leaving) others.push_back(&other);
  return place(without_bad_ones(others));
}

/// Says once of a run that has more hosts than it was told to need that its ranks need all of them.
void Coordinator::tell_if_no_host_may_be_lost() {
  const bool has_more = placement_->hosts() > settings_.least_hosts;
  if (!has_more || !worlds_.admits(world()) || is_bound_said_) return;
  if (std::ranges::any_of(
          hosts_, [this](const Host& host) { return is_in_attempt(host) && place_without(host); }))
    return;
  is_bound_said_ = true;
  actions_.emplace_back(Announce{fmt::format(
      "the configuration admits only {}: the run ends when it loses a host that does not come back "
      "within {} s",
      worlds_.describe(), std::chrono::ceil<std::chrono::seconds>(settings_.rejoin).count())});
}

void Coordinator::send_leaving_away() {
  for (Host& host : hosts_)
    if (host.is_leaving) send_away(host, "it was told to end, and the run goes on without it");
}

/// The run goes on without the host, until another agent comes there.
void Coordinator::send_away(Host& host, const std::string& why) {
  dismiss(host, host.agent, why);
  host.agent.clear();
  host.connected = host.is_leaving = false;
  host.has_left = true;
}

}  // namespace strata::launcher
