#include "launcher/wire/grpc/message_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/error.h"

namespace strata::launcher {
namespace {

// Limits of what is received; far beyond what is sent.
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostSignal = 128;
constexpr std::int64_t kMostCode = 255;
constexpr std::int64_t kMostNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();

/// Returns `value` if it lies in the given range.
template <typename Number>
Number within(Number value, std::int64_t least, std::int64_t most, const char* field) {
  if (std::cmp_less(value, least) || std::cmp_greater(value, most))
    throw DataError(fmt::format("field {} of a control message is {}, not from {} to {}", field,
                                value, least, most));
  return value;
}

// Agents' messages.

void set(const RankState& state, proto::RankState& out) {
  out.set_rank(state.rank);
  out.set_phase(static_cast<std::uint32_t>(state.phase));
  out.set_step(state.step);
  out.set_beats(state.beats);
  out.set_quiet_ns(state.quiet.count());
  out.set_collective(state.collective);
  out.set_collective_name(state.collective_name);
  out.set_where(state.where);
  out.set_committed(state.committed);
  out.set_checkpoint(state.checkpoint);
  out.set_ended(state.ended);
  out.set_held(state.held);
  out.set_traced(state.traced);
  out.set_frozen(state.frozen);
  out.set_process(state.view.process);
  out.set_phase_seconds(state.view.phase_seconds);
  out.set_loss(state.view.loss);
  out.set_tokens_per_second(state.view.tokens_per_second);
  for (const std::int64_t bytes : state.view.tier_bytes) out.add_tier_bytes(bytes);
}

RankView view_of(const proto::RankState& in) {
  RankView view{.process = within(in.process(), -1, kMostInt, "process"),
                .phase_seconds = in.phase_seconds(),
                .loss = in.loss(),
                .tokens_per_second = in.tokens_per_second()};
  if (std::cmp_not_equal(in.tier_bytes_size(), view.tier_bytes.size()))
    throw DataError("field tier_bytes of a control message must have one number for each tier");
  std::ranges::copy(in.tier_bytes(), view.tier_bytes.begin());
  return view;
}

RankState state_of(const proto::RankState& in) {
  constexpr auto kLastPhase = static_cast<std::int64_t>(Phase::failed);
  return {.rank = within(in.rank(), 0, kMostRanks, "rank"),
          .phase = static_cast<Phase>(within(in.phase(), 0, kLastPhase, "phase")),
          .step = within(in.step(), -1, kMostNumber, "step"),
          .beats = in.beats(),
          .quiet = std::chrono::nanoseconds(within(in.quiet_ns(), 0, kMostNumber, "quiet_ns")),
          .collective = within(in.collective(), 0, kMostNumber, "collective"),
          .collective_name = in.collective_name(),
          .where = in.where(),
          .committed = within(in.committed(), -1, kMostNumber, "committed"),
          .checkpoint = in.checkpoint(),
          .ended = in.ended(),
          .held = in.held(),
          .traced = in.traced(),
          .frozen = in.frozen(),
          .view = view_of(in)};
}

void set(const EndedRank& rank, proto::EndedRank& out) {
  if (rank.ending) {
    out.mutable_ending()->set_killed(rank.ending->kind == Ending::Kind::killed);
    out.mutable_ending()->set_number(rank.ending->number);
  }
  out.set_where(rank.where);
  out.set_error(rank.error);
  out.set_done(rank.done);
  out.set_step(rank.step);
  out.set_peak_rss_bytes(rank.peak_rss_bytes);
  out.set_phase_seconds(rank.phase_seconds);
  out.set_stays(rank.stays);
}

EndedRank ended_rank_of(const proto::EndedRank& in) {
  EndedRank rank{.ending = {},
                 .where = in.where(),
                 .error = in.error(),
                 .done = in.done(),
                 .step = within(in.step(), -1, kMostNumber, "step"),
                 .peak_rss_bytes = within(in.peak_rss_bytes(), 0, kMostNumber, "peak_rss_bytes"),
                 .phase_seconds = in.phase_seconds(),
                 .stays = in.stays()};
  if (!std::isfinite(rank.phase_seconds))
    throw DataError("field phase_seconds of a control message is no number");
  if (in.has_ending())
    rank.ending =
        in.ending().killed()
            ? Ending{Ending::Kind::killed, within(in.ending().number(), 1, kMostSignal, "number")}
            : Ending{Ending::Kind::exited, within(in.ending().number(), 0, kMostCode, "number")};
  return rank;
}

void set(const Heartbeat& beat, proto::Heartbeat& out) {
  out.set_number(beat.number);
  out.set_newest(beat.newest);
  out.set_has_ranks(beat.has_ranks);
  out.set_signals(beat.signals);
  for (const RankState& state : beat.ranks) set(state, *out.add_ranks());
}

Heartbeat heartbeat_of(const proto::Heartbeat& in) {
  Heartbeat beat{.number = within(in.number(), 0, kMostNumber, "number"),
                 .newest = within(in.newest(), -1, kMostInt, "newest"),
                 .has_ranks = in.has_ranks(),
                 .signals = in.signals()};
  for (const proto::RankState& state : in.ranks()) beat.ranks.push_back(state_of(state));
  return beat;
}

void set(const AttemptEnded& ended, proto::AttemptEnded& out) {
  const AttemptFacts& facts = ended.facts;
  out.set_attempt(ended.attempt);
  out.set_lease_ended(ended.lease_ended);
  out.set_exit_code(facts.exit_code);
  out.set_was_asked(facts.was_asked);
  out.set_all_stopped(facts.all_stopped);
  out.set_user_signal(facts.user_signal);
  out.set_left_behind(facts.left_behind);
  if (facts.failed) {
    out.mutable_failed()->set_rank(facts.failed->rank);
    out.mutable_failed()->set_spawn_error(facts.failed->spawn_error);
    out.mutable_failed()->set_error_tail(facts.failed->error_tail);
  }
  for (const EndedRank& rank : facts.ranks) set(rank, *out.add_ranks());
  out.set_out_of_memory_kills(facts.out_of_memory_kills);
  out.set_committed(facts.committed);
  out.set_checkpoint(facts.checkpoint);
}

AttemptEnded attempt_ended_of(const proto::AttemptEnded& in) {
  AttemptEnded ended{.attempt = within(in.attempt(), 0, kMostInt, "attempt"),
                     .facts = {},
                     .lease_ended = in.lease_ended()};
  AttemptFacts& facts = ended.facts;
  facts.exit_code = within(in.exit_code(), 0, kMostCode, "exit_code");
  facts.was_asked = in.was_asked();
  facts.all_stopped = in.all_stopped();
  facts.user_signal = within(in.user_signal(), 0, kMostSignal, "user_signal");
  facts.left_behind = in.left_behind();
  if (in.has_failed())
    facts.failed = AttemptFacts::Failed{within(in.failed().rank(), 0, kMostRanks, "rank"),
                                        in.failed().spawn_error(), in.failed().error_tail()};
  for (const proto::EndedRank& rank : in.ranks()) facts.ranks.push_back(ended_rank_of(rank));
  facts.out_of_memory_kills =
      within(in.out_of_memory_kills(), 0, kMostNumber, "out_of_memory_kills");
  facts.committed = within(in.committed(), -1, kMostNumber, "committed");
  facts.checkpoint = in.checkpoint();
  return ended;
}

void set(const RankFailed& failed, proto::RankFailed& out) {
  out.set_attempt(failed.attempt);
  out.set_rank(failed.rank);
  out.set_reason(failed.reason);
  out.set_blames_a_peer(failed.blames_a_peer);
}

RankFailed rank_failed_of(const proto::RankFailed& in) {
  return {within(in.attempt(), 0, kMostInt, "attempt"), within(in.rank(), 0, kMostRanks, "rank"),
          in.reason(), in.blames_a_peer()};
}

void set(const Hello& hello, const Introduction& introduction, proto::Hello& out) {
  out.set_protocol(introduction.protocol);
  out.set_build(introduction.build);
  out.set_host(hello.host);
  out.set_agent(hello.agent);
  out.set_slots(hello.slots);
  out.set_newest(hello.newest);
  out.set_run(introduction.run_id);
  out.set_hosts(introduction.host_count);
  for (const std::string& word : introduction.command) out.add_command(word);
  out.set_host_name(hello.host_name);
}

Hello hello_of(const proto::Hello& in) {
  if (in.host().empty() || in.agent().empty())
    throw DataError("fields host and agent of a control message must have a value");
  return {.host = in.host(),
          .agent = in.agent(),
          .slots = within(in.slots(), 1, kMostRanks, "slots"),
          .newest = within(in.newest(), -1, kMostInt, "newest"),
          .host_name = in.host_name()};
}

void set(const StoreRequest& asked, proto::StoreRequest& out) {
  out.set_attempt(asked.attempt);
  out.set_id(asked.request.id);
  out.set_is_put(asked.request.is_put);
  out.set_key(asked.request.key);
  out.set_value(asked.request.value);
  out.set_timeout_ms(asked.request.timeout_ms);
}

void set(const SignalCame& came, proto::SignalCame& out) {
  out.set_number(came.number);
  out.set_index(came.index);
}

void set(const Evidence& evidence, proto::Evidence& out) {
  out.set_attempt(evidence.attempt);
  out.set_text(evidence.text);
}

StoreRequest store_request_of(const proto::StoreRequest& in) {
  return {within(in.attempt(), 0, kMostInt, "attempt"),
          {.id = in.id(),
           .is_put = in.is_put(),
           .key = in.key(),
           .value = in.value(),
           .timeout_ms = within(in.timeout_ms(), 0, kMostNumber, "timeout_ms")}};
}

// The coordinator's messages.

void set(const StartAttempt& start, proto::FromCoordinator& out) {
  proto::StartAttempt& message = *out.mutable_start_attempt();
  message.set_attempt(start.placement.attempt);
  for (const int slots : start.placement.slots) message.add_slots(slots);
  message.set_node(start.node);
  message.set_last_step(start.last_step);
}

StartAttempt start_of(const proto::StartAttempt& in) {
  StartAttempt start;
  start.placement.attempt = within(in.attempt(), 0, kMostInt, "attempt");
  start.placement.slots.clear();
  std::int64_t world = 0;
  for (const int slots : in.slots()) {
    start.placement.slots.push_back(within(slots, 1, kMostRanks, "slots"));
    within(world += slots, 1, kMostRanks, "slots");
  }
  start.node = within(in.node(), 0, std::int64_t{in.slots_size()} - 1, "node");
  start.last_step = within(in.last_step(), -1, kMostNumber, "last_step");
  return start;
}

void set(const StopAttempt& stop, proto::FromCoordinator& out) {
  out.mutable_stop_attempt()->set_attempt(stop.attempt);
  out.mutable_stop_attempt()->set_reason(stop.reason);
}

void set(const ForwardSignal& signal, proto::FromCoordinator& out) {
  out.mutable_forward_signal()->set_number(signal.number);
  out.mutable_forward_signal()->set_attempt(signal.attempt);
  out.mutable_forward_signal()->set_index(signal.index);
}

ForwardSignal signal_of(const proto::ForwardSignal& in) {
  return {within(in.number(), 1, kMostSignal, "number"),
          within(in.attempt(), 0, kMostInt, "attempt"), in.index()};
}

void set(const Lease& lease, proto::FromCoordinator& out) {
  out.mutable_lease()->set_heartbeat(lease.heartbeat);
  out.mutable_lease()->set_attempt(lease.attempt);
}

void set(const StoreReply& reply, proto::FromCoordinator& out) {
  proto::StoreReply& message = *out.mutable_store_reply();
  message.set_attempt(reply.attempt);
  message.set_id(reply.answer.id);
  message.set_kind(static_cast<std::uint32_t>(reply.answer.kind));
  message.set_value(reply.answer.value);
}

StoreReply store_reply_of(const proto::StoreReply& in) {
  constexpr auto kLast = static_cast<std::int64_t>(ValueAnswer::Kind::failed);
  return {within(in.attempt(), 0, kMostInt, "attempt"),
          {.id = in.id(),
           .kind = static_cast<ValueAnswer::Kind>(within(in.kind(), 0, kLast, "kind")),
           .value = in.value()}};
}

void set(const Collect& collect, proto::FromCoordinator& out) {
  proto::Collect& message = *out.mutable_collect();
  const Hang& hang = collect.hang;
  message.set_attempt(collect.attempt);
  message.set_kind(static_cast<std::uint32_t>(hang.kind));
  message.set_rank(hang.rank);
  message.set_seconds(hang.for_how_long.count());
  message.set_where(hang.where);
  message.set_collective(hang.collective);
  message.set_collective_name(hang.collective_name);
  message.set_other_name(hang.other_name);
  for (const int rank : hang.waiting) message.add_waiting(rank);
  for (const int rank : hang.held) message.add_held(rank);
}

Collect collect_of(const proto::Collect& in) {
  constexpr auto kLast = static_cast<std::int64_t>(Hang::Kind::alone);
  Collect collect{.attempt = within(in.attempt(), 0, kMostInt, "attempt")};
  Hang& hang = collect.hang;
  hang.kind = static_cast<Hang::Kind>(within(in.kind(), 0, kLast, "kind"));
  hang.rank = within(in.rank(), 0, kMostRanks, "rank");
  hang.for_how_long = std::chrono::seconds(within(in.seconds(), 0, kMostInt, "seconds"));
  hang.where = in.where();
  hang.collective = within(in.collective(), 0, kMostNumber, "collective");
  hang.collective_name = in.collective_name();
  hang.other_name = in.other_name();
  for (const int rank : in.waiting())
    hang.waiting.push_back(within(rank, 0, kMostRanks, "waiting"));
  for (const int rank : in.held()) hang.held.push_back(within(rank, 0, kMostRanks, "held"));
  return collect;
}

void set(const Dismiss& dismiss, proto::FromCoordinator& out) {
  out.mutable_dismiss()->set_exit_code(dismiss.exit_code);
  out.mutable_dismiss()->set_reason(dismiss.reason);
}

}  // namespace

proto::FromAgent to_proto(const AgentMessage& message, const Introduction& introduction) {
  proto::FromAgent out;
  if (const auto* hello = std::get_if<Hello>(&message))
    set(*hello, introduction, *out.mutable_hello());
  else if (const auto* beat = std::get_if<Heartbeat>(&message))
    set(*beat, *out.mutable_heartbeat());
  else if (const auto* failed = std::get_if<RankFailed>(&message))
    set(*failed, *out.mutable_rank_failed());
  else if (const auto* ended = std::get_if<AttemptEnded>(&message))
    set(*ended, *out.mutable_attempt_ended());
  else if (const auto* asked = std::get_if<StoreRequest>(&message))
    set(*asked, *out.mutable_store_request());
  else if (const auto* evidence = std::get_if<Evidence>(&message))
    set(*evidence, *out.mutable_evidence());
  else
    set(std::get<SignalCame>(message), *out.mutable_signal_came());
  return out;
}

proto::FromCoordinator to_proto(const CoordinatorMessage& message) {
  proto::FromCoordinator out;
  std::visit([&out](const auto& content) { set(content, out); }, message);
  return out;
}

proto::FromCoordinator to_proto(const Welcomed& welcome) {
  proto::FromCoordinator out;
  out.mutable_welcome()->set_run(welcome.run_id);
  out.mutable_welcome()->set_master_address(welcome.master_address);
  out.mutable_welcome()->set_master_port(welcome.master_port);
  return out;
}

proto::FromCoordinator to_proto(const NotWelcome& refusal) {
  proto::FromCoordinator out;
  out.mutable_refused()->set_reason(refusal.reason);
  out.mutable_refused()->set_exit_code(refusal.exit_code);
  return out;
}

AgentMessage from_proto(const proto::FromAgent& message) {
  switch (message.message_case()) {
    case proto::FromAgent::kHello:
      return hello_of(message.hello());
    case proto::FromAgent::kHeartbeat:
      return heartbeat_of(message.heartbeat());
    case proto::FromAgent::kRankFailed:
      return rank_failed_of(message.rank_failed());
    case proto::FromAgent::kAttemptEnded:
      return attempt_ended_of(message.attempt_ended());
    case proto::FromAgent::kSignalCame:
      return SignalCame{within(message.signal_came().number(), 1, kMostSignal, "number"),
                        within(message.signal_came().index(), 0, kMostInt, "index")};
    case proto::FromAgent::kStoreRequest:
      return store_request_of(message.store_request());
    case proto::FromAgent::kEvidence:
      return Evidence{within(message.evidence().attempt(), 0, kMostInt, "attempt"),
                      message.evidence().text()};
    case proto::FromAgent::MESSAGE_NOT_SET:
      break;
  }
  throw DataError("a control message of an agent is none of those that it may send");
}

Introduction introduction_of(const proto::Hello& hello) {
  return {hello.protocol(),
          hello.build(),
          hello.run(),
          hello.hosts(),
          {hello.command().begin(), hello.command().end()}};
}

std::variant<CoordinatorMessage, Welcomed, NotWelcome> from_proto(
    const proto::FromCoordinator& message) {
  switch (message.message_case()) {
    case proto::FromCoordinator::kWelcome:
      return Welcomed{message.welcome().run(), message.welcome().master_address(),
                      within(message.welcome().master_port(), 1, 65535, "master_port")};
    case proto::FromCoordinator::kRefused:
      return NotWelcome{message.refused().reason(),
                        within(message.refused().exit_code(), 1, kMostCode, "exit_code")};
    case proto::FromCoordinator::kStartAttempt:
      return start_of(message.start_attempt());
    case proto::FromCoordinator::kStopAttempt:
      return StopAttempt{within(message.stop_attempt().attempt(), 0, kMostInt, "attempt"),
                         message.stop_attempt().reason()};
    case proto::FromCoordinator::kForwardSignal:
      return signal_of(message.forward_signal());
    case proto::FromCoordinator::kLease:
      return Lease{within(message.lease().heartbeat(), 0, kMostNumber, "heartbeat"),
                   within(message.lease().attempt(), -1, kMostInt, "attempt")};
    case proto::FromCoordinator::kDismiss:
      return Dismiss{within(message.dismiss().exit_code(), 0, kMostCode, "exit_code"),
                     message.dismiss().reason()};
    case proto::FromCoordinator::kStoreReply:
      return store_reply_of(message.store_reply());
    case proto::FromCoordinator::kCollect:
      return collect_of(message.collect());
    case proto::FromCoordinator::MESSAGE_NOT_SET:
      break;
  }
  throw DataError("a control message of the coordinator is none of those that it may send");
}

}  // namespace strata::launcher
