#include "launcher/control/testing/describe.h"

#include <fmt/core.h>

namespace strata::launcher::simulation {
namespace {

std::string words(const Hello& m) {
  return fmt::format("Hello(agent {}, newest {})", m.agent, m.newest);
}
std::string words(const Heartbeat& m) {
  return fmt::format("Heartbeat({}, newest {}{}, {} signals)", m.number, m.newest,
                     m.has_ranks ? ", has ranks" : "", m.signals);
}
std::string words(const RankFailed& m) {
  return fmt::format("RankFailed(attempt {}, rank {}{})", m.attempt, m.rank,
                     m.blames_a_peer ? ", blames a peer" : "");
}
std::string words(const StoreRequest& m) {
  return fmt::format("StoreRequest({} of attempt {}: {})", m.request.id, m.attempt, m.request.key);
}
std::string words(const Evidence& m) { return fmt::format("Evidence(attempt {})", m.attempt); }
std::string words(const Collect& m) {
  return fmt::format("Collect(attempt {}: rank {})", m.attempt, m.hang.rank);
}
std::string words(const StoreReply& m) {
  return fmt::format("StoreReply({} of attempt {})", m.answer.id, m.attempt);
}
std::string words(const SignalCame& m) { return fmt::format("SignalCame({})", m.number); }
std::string words(const AttemptEnded& m) {
  return fmt::format("AttemptEnded(attempt {}, code {}{}, committed {}{})", m.attempt,
                     m.facts.exit_code, m.facts.was_asked ? ", was asked" : "", m.facts.committed,
                     m.lease_ended ? ", lease ended" : "");
}
std::string words(const StartAttempt& m) {
  return fmt::format("StartAttempt({}, node {} of {})", m.placement.attempt, m.node,
                     m.placement.hosts());
}
std::string words(const StopAttempt& m) {
  return fmt::format("StopAttempt({}: {})", m.attempt, m.reason);
}
std::string words(const ForwardSignal& m) {
  return fmt::format("ForwardSignal({} of attempt {}: {})", m.index, m.attempt, m.number);
}
std::string words(const Lease& m) { return fmt::format("Lease({})", m.heartbeat); }
std::string words(const Dismiss& m) { return fmt::format("Dismiss({})", m.exit_code); }

}  // namespace

std::string describe(const AgentMessage& message) {
  return std::visit([](const auto& m) { return words(m); }, message);
}

std::string describe(const CoordinatorMessage& message) {
  return std::visit([](const auto& m) { return words(m); }, message);
}

}  // namespace strata::launcher::simulation
