// How long hosts count as there: leases, silence, and when ranks have ended for certain.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "launcher/control/agent.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {

void Coordinator::on(const CoordinatorTick&) {
  answer(values_.expire(now_));
  for (Host& host : hosts_) {
    if (may_be_a_lost_spare(host) && *host.broke + kReconnect <= now_) {
      host.broke.reset();
      actions_.emplace_back(
          Announce{fmt::format("spare host {} is gone: {}", shown(host), kItsConnectionBroke)});
    }
    if (!is_in_attempt(host) || host.is_over) continue;
    if (const auto end = lease_ends(host); end && *end <= now_) {
      lose(host, "it has given no sign of life for " +
                     std::to_string((now_ - host.last_beat) / std::chrono::seconds(1)) + " s");
      host.is_over = true;  // its agent has killed what it had, or is gone with all of it
      note_end_of_ranks(host);
    } else if (host.broke && *host.broke + kReconnect <= now_) {
      host.broke.reset();  // that is said once; that its ranks have ended, its lease tells
      lose(host, kItsConnectionBroke);
      actions_.emplace_back(
          Announce{fmt::format("host {} is lost: {}", shown(host), kItsConnectionBroke)});
    } else if (const auto begin = silence_begins(host); begin && *begin <= now_) {
      note_silence(host);
    }
  }
}

/// Says long before a host is lost that nothing comes from it.
void Coordinator::note_silence(Host& host) {
  host.is_silent = true;
  const auto in_seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
  actions_.emplace_back(Announce{fmt::format(
      "host {} has been silent for {:.1f} s; it counts as lost after {:.1f} s", shown(host),
      in_seconds(now_ - host.last_beat), in_seconds(*settings_.lease + kLeaseMargin))});
}

void Coordinator::note_life(Host& host) {
  if (std::exchange(host.is_silent, false)) {
    actions_.emplace_back(Announce{fmt::format("host {} answers again", shown(host))});
    host.is_back = true;
    host.spoke_again.reset();
    host.times_apart = 0;
  }
  host.last_beat = now_;
}

/// Trusts a host that was silent again once two new heartbeats have come half of one after those
/// before them: until then come words that waited on the way, at most one of them apart from the
/// others, and one of ranks that got nothing done or have just been killed.
void Coordinator::note_states(Host& host) {
  constexpr int kTimesApart = 2;
  if (!host.is_back) return;
  if (host.spoke_again && now_ - *host.spoke_again >= kHeartbeat / 2) ++host.times_apart;
  host.spoke_again = now_;
  host.is_back = host.times_apart < kTimesApart;
}

/// Returns when the ranks of a host have ended for certain; nullopt if no lease limits them.
std::optional<Coordinator::TimePoint> Coordinator::lease_ends(const Host& host) const {
  if (!settings_.lease) return {};
  return host.last_beat + *settings_.lease + kLeaseMargin;
}

/// Returns when the silence of a host is worth a word; nullopt: it was said, its connection broke,
/// or its ranks end, when an agent may be busy for seconds with evidence of a hang.
std::optional<Coordinator::TimePoint> Coordinator::silence_begins(const Host& host) const {
  const bool has_part = state_ == State::running && is_in_attempt(host) && !host.is_over;
  if (!settings_.lease || !has_part || !host.connected || host.is_silent) return {};
  return host.last_beat + kSilence;
}

/// True if the host is there and answers.
bool Coordinator::has_lease(const Host& host) const {
  const auto end = lease_ends(host);
  return host.connected && (!end || now_ < *end);
}

/// Returns when ranks that an earlier coordinator of the run started have ended for certain, also
/// those of agents that have not come; nullopt: there were none, or all agents of before are there.
/// That of the coordinator's host died with it.
std::optional<Coordinator::TimePoint> Coordinator::earlier_ranks_end() const {
  if (placement_ || newest_ < 0 || !settings_.lease) return {};
  if (std::ranges::all_of(hosts_, [this](const Host& host) {
        return host.name == settings_.own_host || host.newest >= 0;
      }))
    return {};
  return gathering_since_ + *settings_.lease + kLeaseMargin;
}

/// True if the states of a host's ranks are known as they were lately. A late copy of an old word
/// is a sign of life, and tells nothing of now; nor do the first words of a host that was paused.
bool Coordinator::are_states_new(const Host& host) const {
  return host.connected && !host.is_silent && !host.is_back &&
         (host.beat < 0 || now_ < host.beat_came + kSilence);
}

bool Coordinator::has_old_states() const {
  return std::ranges::any_of(hosts_, [this](const Host& host) {
    return is_in_attempt(host) && !host.is_over && !are_states_new(host);
  });
}

/// True while ranks of the attempt, or of an earlier coordinator's, may be left on the host.
bool Coordinator::may_have_ranks(const Host& host) const {
  if (is_in_attempt(host) && !host.is_over) return true;
  const auto end = lease_ends(host);
  return host.has_ranks && (!end || now_ < *end);
}

/// True if ranks may start on the host.
bool Coordinator::is_free(const Host& host) const {
  return has_lease(host) && !host.has_ranks && !host.is_leaving;
}

}  // namespace strata::launcher
