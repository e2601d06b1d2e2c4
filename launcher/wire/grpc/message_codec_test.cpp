#include "launcher/wire/grpc/message_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/error.h"

namespace strata::launcher {
namespace {

constexpr const char* kRunId = "0123456789abcdef";

const Introduction kIntroduction{
    .facts = {"0.1", {{"--rejoin", "60"}, {"--elastic", ""}}, {"train", "\xff"}}, .run_id = kRunId};

proto::FromAgent sent(const AgentMessage& message) {
  const std::string bytes = to_proto(message, kIntroduction).SerializeAsString();
  proto::FromAgent received;
  EXPECT_TRUE(received.ParseFromString(bytes));
  return received;
}
template <typename Message>
Message there(const AgentMessage& message) {
  return std::get<Message>(from_proto(sent(message)));
}
template <typename Message>
Message there(const CoordinatorMessage& message) {
  const std::string bytes = to_proto(message).SerializeAsString();
  proto::FromCoordinator received;
  EXPECT_TRUE(received.ParseFromString(bytes));
  return std::get<Message>(std::get<CoordinatorMessage>(from_proto(received)));
}

const RankState kState{.rank = 3,
                       .phase = Phase::backward,
                       .step = 12,
                       .beats = 345,
                       .quiet = std::chrono::seconds(7),
                       .collective = 8,
                       .collective_name = "reduce_scatter layer4",
                       .where = "step 12 \xff",
                       .committed = 10,
                       .checkpoint = "out/step",
                       .ended = true,
                       .held = true,
                       .traced = true,
                       .frozen = true,
                       .switches = 901,
                       .unread = true,
                       .work_ns = 77,
                       .worked_steps = 5,
                       .view = {.process = 4711,
                                .phase_seconds = 1.5,
                                .loss = 2.25,
                                .tokens_per_second = 1000,
                                .tier_bytes = {1, 2, 3, 4},
                                .save_failure = SaveFailure{12, 3.5, "no space \xff"}}};

TEST(MessageCodec, AgentsMessagesArriveAsTheyWereSent) {
  const auto hello = there<Hello>(Hello{.host = "a",
                                        .agent = "7",
                                        .slots = 4,
                                        .newest = 2,
                                        .has_had_ranks = true,
                                        .host_name = "gpu-07"});
  EXPECT_EQ(hello.host, "a");
  EXPECT_EQ(hello.agent, "7");
  EXPECT_EQ(hello.slots, 4);
  EXPECT_EQ(hello.newest, 2);
  EXPECT_TRUE(hello.has_had_ranks);
  EXPECT_EQ(hello.host_name, "gpu-07");
  const Introduction said = introduction_of(sent(Hello{.host = "a", .agent = "7"}).hello());
  EXPECT_EQ(said.protocol, kControlProtocol);
  EXPECT_EQ(said.run_id, kRunId);
  EXPECT_EQ(said.facts.build, "0.1");
  EXPECT_EQ(said.facts.options, kIntroduction.facts.options);
  EXPECT_EQ(said.facts.command, kIntroduction.facts.command);
  const auto beat = there<Heartbeat>(Heartbeat{9, 2, true, 1, {kState, RankState{}}});
  EXPECT_EQ(beat.number, 9);
  EXPECT_EQ(beat.newest, 2);
  EXPECT_TRUE(beat.has_ranks);
  EXPECT_EQ(beat.signals, 1U);
  ASSERT_EQ(beat.ranks.size(), 2U);
  EXPECT_EQ(beat.ranks[0], kState);
  EXPECT_TRUE(std::isnan(beat.ranks[1].view.loss));
  const auto failed = there<RankFailed>(RankFailed{1, 5, "rank 5 fell", true});
  EXPECT_EQ(failed.attempt, 1);
  EXPECT_EQ(failed.rank, 5);
  EXPECT_EQ(failed.reason, "rank 5 fell");
  EXPECT_TRUE(failed.blames_a_peer);
  EXPECT_EQ(there<SignalCame>(SignalCame{15, 3}).index, 3);
  const auto evidence = there<Evidence>(Evidence{3, "held\xff", "wait \xfe", "events \xfd"});
  EXPECT_EQ(evidence.text, "held\xff");
  EXPECT_EQ(evidence.advice, "wait \xfe");
  EXPECT_EQ(evidence.details, "events \xfd");
  const ValueRequest request{
      .id = 4, .is_put = true, .key = "k", .value = "v\xff", .timeout_ms = 9};
  EXPECT_EQ(there<StoreRequest>(StoreRequest{2, request}).attempt, 2);
  EXPECT_EQ(there<StoreRequest>(StoreRequest{2, request}).request, request);
}

TEST(MessageCodec, OutputArrivesAsItWasSent) {
  const RecentOutput::Piece piece{.lines = {{3, 1, OutputKind::standard_error, "a\xff"}, {}},
                                  .next = 9,
                                  .dropped = 4,
                                  .end = 12};
  proto::FromAgent received;
  ASSERT_TRUE(received.ParseFromString(to_proto(piece).SerializeAsString()));
  const RecentOutput::Piece there = output_of(received.output());
  EXPECT_EQ(there.lines, piece.lines);
  EXPECT_EQ(there.next, 9U);
  EXPECT_EQ(there.dropped, 4U);
  EXPECT_EQ(there.end, 12U);
  const auto wanted = from_proto(to_proto(OutputWanted{7}));
  EXPECT_EQ(std::get<OutputWanted>(wanted).number, 7U);
  received.mutable_output()->mutable_lines(0)->set_rank(-2);
  EXPECT_THROW((void)output_of(received.output()), DataError);
  EXPECT_THROW((void)from_proto(received), DataError) << "it is none of the machines' messages";
}

TEST(MessageCodec, FactsOfAnAttemptArriveAsTheyWereSent) {
  AttemptFacts facts{.exit_code = 137,
                     .was_asked = true,
                     .all_stopped = true,
                     .user_signal = 15,
                     .kill_asked = true,
                     .left_behind = true,
                     .failed = AttemptFacts::Failed{1, "no such file", "tail\xfe"},
                     .ranks = {{.ending = Ending{Ending::Kind::killed, 9},
                                .where = "step 3",
                                .error = "bad",
                                .done = true,
                                .step = 3,
                                .phase = Phase::update,
                                .instruction = 7,
                                .instruction_name = "adamw",
                                .collective = 8,
                                .collective_name = "reduce_scatter",
                                .peak_rss_bytes = 1 << 20,
                                .phase_seconds = 1.5,
                                .save_failure = SaveFailure{3, 2.5, "no space"},
                                .stays = "frozen"},
                               {.ending = Ending{Ending::Kind::exited, 78}},
                               {}},
                     .out_of_memory_kills = 2,
                     .committed = 2,
                     .checkpoint = "out/2"};
  const auto ended = there<AttemptEnded>(AttemptEnded{4, facts, true});
  EXPECT_EQ(ended.attempt, 4);
  EXPECT_TRUE(ended.lease_ended);
  const AttemptFacts& got = ended.facts;
  EXPECT_EQ(got.exit_code, 137);
  EXPECT_TRUE(got.was_asked && got.all_stopped && got.kill_asked && got.left_behind);
  EXPECT_EQ(got.user_signal, 15);
  EXPECT_EQ(got.failed->rank, 1);
  EXPECT_EQ(got.failed->spawn_error, "no such file");
  EXPECT_EQ(got.failed->error_tail, "tail\xfe");
  ASSERT_EQ(got.ranks.size(), 3U);
  EXPECT_EQ(got.ranks[0].ending, facts.ranks[0].ending);
  EXPECT_EQ(got.ranks[0].where, "step 3");
  EXPECT_EQ(got.ranks[0].error, "bad");
  EXPECT_TRUE(got.ranks[0].done);
  EXPECT_EQ(got.ranks[0].step, 3);
  EXPECT_EQ(got.ranks[0].phase, Phase::update);
  EXPECT_EQ(got.ranks[0].instruction, 7);
  EXPECT_EQ(got.ranks[0].instruction_name, "adamw");
  EXPECT_EQ(got.ranks[0].collective, 8);
  EXPECT_EQ(got.ranks[0].collective_name, "reduce_scatter");
  EXPECT_EQ(got.ranks[0].peak_rss_bytes, 1 << 20);
  EXPECT_EQ(got.ranks[0].phase_seconds, 1.5);
  EXPECT_EQ(got.ranks[0].save_failure, facts.ranks[0].save_failure);
  EXPECT_EQ(got.ranks[0].stays, "frozen");
  EXPECT_EQ(got.ranks[1].ending, facts.ranks[1].ending);
  EXPECT_EQ(got.ranks[2].ending, std::nullopt);
  EXPECT_EQ(got.ranks[2].step, -1);
  EXPECT_EQ(got.out_of_memory_kills, 2);
  EXPECT_EQ(got.committed, 2);
  EXPECT_EQ(got.checkpoint, "out/2");
}

TEST(MessageCodec, TheCoordinatorsMessagesArriveAsTheyWereSent) {
  const StartAttempt start{.placement = {.slots = {2, 3}, .attempt = 1},
                           .node = 1,
                           .last_step = 9,
                           .is_elastic = true,
                           .lock_wait = std::chrono::seconds(120)};
  EXPECT_EQ(there<StartAttempt>(start), start);
  const StopAttempt stop{3, "rank 1 fell"};
  EXPECT_EQ(there<StopAttempt>(stop), stop);
  const ForwardSignal signal{15, 2, 1};
  EXPECT_EQ(there<ForwardSignal>(signal), signal);
  const Lease lease{12, 3, true};
  EXPECT_EQ(there<Lease>(lease), lease);
  const StoreReply reply{2, {.id = 4, .kind = ValueAnswer::Kind::failed, .value = "v\xff"}};
  EXPECT_EQ(there<StoreReply>(reply), reply);
  const Hang hang{.kind = Hang::Kind::silent,
                  .rank = 3,
                  .host = "1 (b)",
                  .for_how_long = std::chrono::seconds(31),
                  .where = "step 2 \xff",
                  .collective = 9,
                  .collective_name = "all_gather",
                  .other_name = "barrier",
                  .waiting = {0, 1},
                  .held = {3}};
  const auto collect = there<Collect>(Collect{4, hang});
  EXPECT_EQ(collect.attempt, 4);
  EXPECT_EQ(collect.hang, hang);
  const Dismiss dismiss{75, "it was stopped"};
  EXPECT_EQ(there<Dismiss>(dismiss), dismiss);
  const auto welcome =
      std::get<Welcomed>(from_proto(to_proto(Welcomed{kRunId, "10.0.0.1", 29500})));
  EXPECT_EQ(welcome.run_id, kRunId);
  EXPECT_EQ(welcome.master_address, "10.0.0.1");
  EXPECT_EQ(welcome.master_port, 29500);
  const auto refused = std::get<NotWelcome>(from_proto(to_proto(NotWelcome{"no", 75, true})));
  EXPECT_EQ(refused.exit_code, 75);
  EXPECT_TRUE(refused.may_wait);
  const NotWelcome ended{"the run has ended", 0};
  EXPECT_EQ(std::get<NotWelcome>(from_proto(to_proto(ended))).exit_code, 0) << "it ended well";
}

/// Returns why a message is refused after `change`; "accepted" if it is not.
template <typename Change>
std::string refusal(const AgentMessage& message, Change change) {
  proto::FromAgent received = sent(message);
  change(received);
  try {
    (void)from_proto(received);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MessageCodec, WhatNoAgentSendsIsRefusedWithTheField) {
  const AgentMessage hello = Hello{.host = "a", .agent = "1"};
  EXPECT_EQ(refusal(hello, [](auto&) {}), "accepted");
  EXPECT_EQ(refusal(hello, [](auto& m) { m.mutable_hello()->set_slots(0); }),
            "field slots of a control message is 0, not from 1 to 1048576");
  EXPECT_NE(refusal(hello, [](auto& m) { m.mutable_hello()->clear_host(); }).find("host"),
            std::string::npos);
  const AgentMessage beat = Heartbeat{.ranks = {kState}};
  EXPECT_NE(refusal(beat, [](auto& m) { m.mutable_heartbeat()->mutable_ranks(0)->set_phase(11); })
                .find("field phase"),
            std::string::npos);
  EXPECT_NE(
      refusal(beat, [](auto& m) { m.mutable_heartbeat()->set_newest(-2); }).find("field newest"),
      std::string::npos);
  const AgentMessage ended = AttemptEnded{0, {.ranks = {{}}}, false};
  EXPECT_NE(
      refusal(ended,
              [](auto& m) { m.mutable_attempt_ended()->mutable_ranks(0)->set_phase_seconds(NAN); })
          .find("phase_seconds"),
      std::string::npos);
  EXPECT_NE(refusal(ended, [](auto& m) { m.Clear(); }).find("none of those"), std::string::npos);
}

TEST(MessageCodec, WhatIsNoIdOfARunIsRefused) {
  proto::FromAgent hello = sent(Hello{.host = "a", .agent = "1"});
  for (const char* run : {"../../etc", "0123456789abcdeF", "0123456789abcdef0"}) {
    hello.mutable_hello()->set_run(run);
    EXPECT_THROW((void)introduction_of(hello.hello()), DataError) << run;
    proto::FromCoordinator welcome = to_proto(Welcomed{kRunId, "10.0.0.1", 29500});
    welcome.mutable_welcome()->set_run(run);
    EXPECT_THROW((void)from_proto(welcome), DataError) << run;
  }
  hello.mutable_hello()->clear_run();
  EXPECT_EQ(introduction_of(hello.hello()).run_id, "") << "it has taken part in none";
}

TEST(MessageCodec, AStartOnAHostThatIsNotThereIsRefused) {
  proto::FromCoordinator message = to_proto(StartAttempt{.placement = {.slots = {1}}, .node = 0});
  message.mutable_start_attempt()->set_node(1);
  EXPECT_THROW((void)from_proto(message), DataError);
  message.mutable_start_attempt()->clear_slots();
  EXPECT_THROW((void)from_proto(message), DataError);
}

}  // namespace
}  // namespace strata::launcher
