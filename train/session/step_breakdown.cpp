#include "train/session/step_breakdown.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdio>

#include "core/clock.h"
#include "runtime/graph/transfer_node.h"

namespace strata::train {
namespace {

using runtime::Pass;
using runtime::Queue;

constexpr std::int64_t kTexts = 10;  // if no interval was given

const runtime::Instruction& instruction_of(const runtime::Program& program, int instruction) {
  return program.instructions[static_cast<std::size_t>(instruction)];
}

bool is_evaluation(const runtime::Program& program) { return program.name == "evaluate"; }

double taken(std::atomic<std::int64_t>& ns) { return static_cast<double>(ns.exchange(0)); }

std::string part(std::string_view name, double ns, std::int64_t steps) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*s %.2f ms", static_cast<int>(name.size()), name.data(),
                ns * 1e-6 / static_cast<double>(steps));
  return text;
}

}  // namespace

StepBreakdown::StepBreakdown(Measured measured, std::int64_t every, std::int64_t steps)
    : measured_(measured),
      every_(every > 0 ? every : std::max<std::int64_t>(1, steps / kTexts)),
      last_step_(steps) {}

void StepBreakdown::begin(const runtime::Program& program, int instruction) {
  if (measured_ == Measured::threads)
    begun_ns_[static_cast<std::size_t>(instruction_of(program, instruction).queue)] =
        monotonic_ns();
}

void StepBreakdown::end(const runtime::Program& program, int instruction) {
  const runtime::Instruction& in = instruction_of(program, instruction);
  // Transfers of a disk overlap within their queue; executed() counts them.
  if (measured_ == Measured::device || runtime::is_disk_transfer(*in.operation) ||
      is_evaluation(program))
    return;
  add(in, monotonic_ns() - begun_ns_[static_cast<std::size_t>(in.queue)]);
}

void StepBreakdown::waited(const runtime::Program& program, int, Queue, std::int64_t ns) {
  if (!is_evaluation(program)) waited_.fetch_add(ns, std::memory_order_relaxed);
}

void StepBreakdown::executed(const runtime::Program& program, int instruction,
                             std::int64_t begin_ns, std::int64_t end_ns) {
  if (!is_evaluation(program)) add(instruction_of(program, instruction), end_ns - begin_ns);
}

void StepBreakdown::add(const runtime::Instruction& in, std::int64_t ns) {
  Time& sum = in.queue == Queue::compute ? passes_[static_cast<std::size_t>(in.pass)]
                                         : queues_[static_cast<std::size_t>(in.queue)];
  sum.fetch_add(ns, std::memory_order_relaxed);
}

std::optional<std::string> StepBreakdown::complete(std::int64_t step, double seconds) {
  ++steps_;
  seconds_ += seconds;
  if (step % every_ != 0 && step != last_step_) return {};
  std::string text =
      fmt::format("wall clock of steps {} to {}: {}", step - steps_ + 1, step, describe());
  steps_ = 0;
  seconds_ = 0;
  return text;
}

std::string StepBreakdown::describe() {
  std::string text = part("step", seconds_ * 1e9, steps_);
  const char* separator = ": ";
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::update}) {
    text += separator + part(name_of(pass), taken(passes_[static_cast<std::size_t>(pass)]), steps_);
    separator = ", ";
  }
  if (const double ns = taken(waited_); ns > 0) text += separator + part("waiting", ns, steps_);
  separator = "; beside that ";
  for (const Queue queue : runtime::kAllQueues) {
    const double ns = taken(queues_[static_cast<std::size_t>(queue)]);
    if (ns == 0) continue;
    text +=
        separator + part(queue == Queue::host ? "updates on the host" : name_of(queue), ns, steps_);
    separator = ", ";
  }
  return text;
}

}  // namespace strata::train
