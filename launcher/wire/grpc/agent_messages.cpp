// Messages of agents (message_codec.h).
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "launcher/wire/grpc/field_range.h"
#include "launcher/wire/grpc/message_codec.h"

namespace strata::launcher {
namespace {

void set(const SaveFailure& failure, proto::SaveFailure& out) {
  out.set_step(failure.step);
  out.set_seconds(failure.seconds);
  out.set_why(failure.why);
}

SaveFailure save_failure_of(const proto::SaveFailure& in) {
  return {
      .step = within(in.step(), 0, kMostNumber, "step"), .seconds = in.seconds(), .why = in.why()};
}

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
  out.set_switches(state.switches);
  out.set_unread(state.unread);
  out.set_work_ns(state.work_ns);
  out.set_worked_steps(state.worked_steps);
  out.set_process(state.view.process);
  out.set_phase_seconds(state.view.phase_seconds);
  out.set_loss(state.view.loss);
  out.set_tokens_per_second(state.view.tokens_per_second);
  for (const std::int64_t bytes : state.view.tier_bytes) out.add_tier_bytes(bytes);
  if (state.view.save_failure) set(*state.view.save_failure, *out.mutable_save_failure());
}

RankView view_of(const proto::RankState& in) {
  RankView view{.process = within(in.process(), -1, kMostInt, "process"),
                .phase_seconds = in.phase_seconds(),
                .loss = in.loss(),
                .tokens_per_second = in.tokens_per_second()};
  if (std::cmp_not_equal(in.tier_bytes_size(), view.tier_bytes.size()))
    throw DataError("field tier_bytes of a control message must have one number for each tier");
  std::ranges::copy(in.tier_bytes(), view.tier_bytes.begin());
  if (in.has_save_failure()) view.save_failure = save_failure_of(in.save_failure());
  return view;
}

Phase phase_of(std::uint32_t number) {
  constexpr auto kLastPhase = static_cast<std::int64_t>(Phase::failed);
  return static_cast<Phase>(within(number, 0, kLastPhase, "phase"));
}

RankState state_of(const proto::RankState& in) {
  return {.rank = within(in.rank(), 0, kMostRanks, "rank"),
          .phase = phase_of(in.phase()),
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
          .switches = in.switches(),
          .unread = in.unread(),
          .work_ns = within(in.work_ns(), 0, kMostNumber, "work_ns"),
          .worked_steps = within(in.worked_steps(), 0, kMostNumber, "worked_steps"),
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
  out.set_phase(static_cast<std::uint32_t>(rank.phase));
  out.set_instruction(rank.instruction);
  out.set_instruction_name(rank.instruction_name);
  out.set_collective(rank.collective);
  out.set_collective_name(rank.collective_name);
  if (rank.save_failure) set(*rank.save_failure, *out.mutable_save_failure());
}

EndedRank ended_rank_of(const proto::EndedRank& in) {
  EndedRank rank{.ending = {},
                 .where = in.where(),
                 .error = in.error(),
                 .done = in.done(),
                 .step = within(in.step(), -1, kMostNumber, "step"),
                 .phase = phase_of(in.phase()),
                 .instruction = within(in.instruction(), -1, kMostNumber, "instruction"),
                 .instruction_name = in.instruction_name(),
                 .collective = within(in.collective(), 0, kMostNumber, "collective"),
                 .collective_name = in.collective_name(),
                 .peak_rss_bytes = within(in.peak_rss_bytes(), 0, kMostNumber, "peak_rss_bytes"),
                 .phase_seconds = in.phase_seconds(),
                 .save_failure = {},
                 .stays = in.stays()};
  if (in.has_save_failure()) rank.save_failure = save_failure_of(in.save_failure());
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
  out.set_kill_asked(facts.kill_asked);
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
  facts.kill_asked = in.kill_asked();
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
  out.set_build(introduction.facts.build);
  out.set_host(hello.host);
  out.set_agent(hello.agent);
  out.set_slots(hello.slots);
  out.set_newest(hello.newest);
  out.set_run(introduction.run_id);
  for (const auto& [name, value] : introduction.facts.options) {
    proto::Option& option = *out.add_options();
    option.set_name(name);
    option.set_value(value);
  }
  for (const std::string& word : introduction.facts.command) out.add_command(word);
  out.set_host_name(hello.host_name);
  out.set_has_had_ranks(hello.has_had_ranks);
}

Hello hello_of(const proto::Hello& in) {
  if (in.host().empty() || in.agent().empty())
    throw DataError("fields host and agent of a control message must have a value");
  return {.host = in.host(),
          .agent = in.agent(),
          .slots = within(in.slots(), 1, kMostRanks, "slots"),
          .newest = within(in.newest(), -1, kMostInt, "newest"),
          .has_had_ranks = in.has_had_ranks(),
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
  out.set_advice(evidence.advice);
  out.set_details(evidence.details);
}

StoreRequest store_request_of(const proto::StoreRequest& in) {
  return {within(in.attempt(), 0, kMostInt, "attempt"),
          {.id = in.id(),
           .is_put = in.is_put(),
           .key = in.key(),
           .value = in.value(),
           .timeout_ms = within(in.timeout_ms(), 0, kMostNumber, "timeout_ms")}};
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

proto::FromAgent to_proto(const RecentOutput::Piece& output) {
  proto::FromAgent out;
  proto::Output& message = *out.mutable_output();
  message.set_next(output.next);
  message.set_dropped(output.dropped);
  message.set_end(output.end);
  for (const OutputLine& line : output.lines) {
    proto::OutputLine& added = *message.add_lines();
    added.set_rank(line.rank);
    added.set_attempt(line.attempt);
    added.set_error(line.kind == OutputKind::standard_error);
    added.set_text(line.text);
  }
  return out;
}

RecentOutput::Piece output_of(const proto::Output& output) {
  RecentOutput::Piece piece{
      .next = output.next(), .dropped = output.dropped(), .end = output.end()};
  for (const proto::OutputLine& line : output.lines())
    piece.lines.push_back({within(line.rank(), OutputLine::kMlaunch, kMostRanks, "rank"),
                           within(line.attempt(), -1, kMostInt, "attempt"),
                           line.error() ? OutputKind::standard_error : OutputKind::standard_output,
                           line.text()});
  return piece;
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
                      message.evidence().text(), message.evidence().advice(),
                      message.evidence().details()};
    case proto::FromAgent::kOutput:  // is no message of the machines: output_of()
    case proto::FromAgent::MESSAGE_NOT_SET:
      break;
  }
  throw DataError("a control message of an agent is none of those that it may send");
}

Introduction introduction_of(const proto::Hello& hello) {
  Introduction introduction{.protocol = hello.protocol(),
                            .facts = {.build = hello.build(),
                                      .command = {hello.command().begin(), hello.command().end()}},
                            .run_id = hello.run().empty() ? "" : checked_run_id(hello.run())};
  for (const proto::Option& option : hello.options())
    introduction.facts.options.push_back({option.name(), option.value()});
  return introduction;
}

}  // namespace strata::launcher
