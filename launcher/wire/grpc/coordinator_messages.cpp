// Messages of the coordinator (message_codec.h).
#include <cstdint>

#include "core/error.h"
#include "launcher/wire/grpc/field_range.h"
#include "launcher/wire/grpc/message_codec.h"

namespace strata::launcher {
namespace {

void set(const StartAttempt& start, proto::FromCoordinator& out) {
  proto::StartAttempt& message = *out.mutable_start_attempt();
  message.set_attempt(start.placement.attempt);
  for (const int slots : start.placement.slots) message.add_slots(slots);
  message.set_node(start.node);
  message.set_last_step(start.last_step);
  message.set_elastic(start.is_elastic);
  message.set_lock_wait_s(start.lock_wait.count());
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
  start.is_elastic = in.elastic();
  start.lock_wait = std::chrono::seconds(within(in.lock_wait_s(), 0, kMostInt, "lock_wait_s"));
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
  out.mutable_lease()->set_is_spare(lease.is_spare);
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
  message.set_host(hang.host);
  message.set_where(hang.where);
  message.set_collective(hang.collective);
  message.set_collective_name(hang.collective_name);
  message.set_other_name(hang.other_name);
  for (const int rank : hang.waiting) message.add_waiting(rank);
  for (const int rank : hang.held) message.add_held(rank);
}

Collect collect_of(const proto::Collect& in) {
  constexpr auto kLast = static_cast<std::int64_t>(Hang::Kind::silent);
  Collect collect{.attempt = within(in.attempt(), 0, kMostInt, "attempt")};
  Hang& hang = collect.hang;
  hang.kind = static_cast<Hang::Kind>(within(in.kind(), 0, kLast, "kind"));
  hang.rank = within(in.rank(), 0, kMostRanks, "rank");
  hang.for_how_long = std::chrono::seconds(within(in.seconds(), 0, kMostInt, "seconds"));
  hang.host = in.host();
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
  out.mutable_refused()->set_may_wait(refusal.may_wait);
  return out;
}

proto::FromCoordinator to_proto(const OutputWanted& wanted) {
  proto::FromCoordinator out;
  out.mutable_fetch_output()->set_number(wanted.number);
  return out;
}

std::variant<CoordinatorMessage, Welcomed, NotWelcome, OutputWanted> from_proto(
    const proto::FromCoordinator& message) {
  switch (message.message_case()) {
    case proto::FromCoordinator::kWelcome:
      return Welcomed{checked_run_id(message.welcome().run()), message.welcome().master_address(),
                      within(message.welcome().master_port(), 1, 65535, "master_port")};
    case proto::FromCoordinator::kRefused:
      return NotWelcome{message.refused().reason(),
                        within(message.refused().exit_code(), 0, kMostCode, "exit_code"),
                        message.refused().may_wait()};
    case proto::FromCoordinator::kStartAttempt:
      return start_of(message.start_attempt());
    case proto::FromCoordinator::kStopAttempt:
      return StopAttempt{within(message.stop_attempt().attempt(), 0, kMostInt, "attempt"),
                         message.stop_attempt().reason()};
    case proto::FromCoordinator::kForwardSignal:
      return signal_of(message.forward_signal());
    case proto::FromCoordinator::kLease:
      return Lease{within(message.lease().heartbeat(), 0, kMostNumber, "heartbeat"),
                   within(message.lease().attempt(), -1, kMostInt, "attempt"),
                   message.lease().is_spare()};
    case proto::FromCoordinator::kDismiss:
      return Dismiss{within(message.dismiss().exit_code(), 0, kMostCode, "exit_code"),
                     message.dismiss().reason()};
    case proto::FromCoordinator::kStoreReply:
      return store_reply_of(message.store_reply());
    case proto::FromCoordinator::kCollect:
      return collect_of(message.collect());
    case proto::FromCoordinator::kFetchOutput:
      return OutputWanted{message.fetch_output().number()};
    case proto::FromCoordinator::MESSAGE_NOT_SET:
      break;
  }
  throw DataError("a control message of the coordinator is none of those that it may send");
}

}  // namespace strata::launcher
