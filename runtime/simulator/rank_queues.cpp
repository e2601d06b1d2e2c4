#include "runtime/simulator/rank_queues.h"

#include <algorithm>

#include "core/check.h"

namespace strata::runtime {
namespace {

std::size_t index_of(Queue queue) { return static_cast<std::size_t>(queue); }

}  // namespace

RunNumber RankQueues::start(const SimulatedProgram& program, std::int64_t step) {
  STRATA_CHECK(started_ - finished() < kInFlight, started_);
  for (Observer* observer : observers) observer->starting(*program.program, step);
  Run& run = run_of(started_);
  run.loaded = &program;
  run.step = step;
  run.done.fill(-1);
  return started_++;
}

std::int64_t RankQueues::finished() const {
  return std::ranges::min_element(queues_, {}, &OfQueue::run)->run;
}

bool RankQueues::has_read_inputs(RunNumber run) const {
  if (finished() > run) return true;
  const Run& of_number = run_of(run);
  for (std::size_t q = 0; q < queues_.size(); ++q)
    if (of_number.done[q] < of_number.loaded->inputs_read[q]) return false;
  return true;
}

const Instruction& RankQueues::running(Queue queue) const {
  return run_of(of(queue).run).loaded->program->instructions[static_cast<std::size_t>(next(queue))];
}

const InstructionWork& RankQueues::work(Queue queue) const {
  return run_of(of(queue).run).loaded->work[static_cast<std::size_t>(next(queue))];
}

void RankQueues::proceed(std::int64_t now_ns, std::vector<Queue>& begun) {
  // A queue that has done with a run may be what another one waits for at the border.
  for (bool moved = true; moved;) {
    moved = false;
    for (const Queue queue : kAllQueues) moved = go_on(queue, now_ns, begun) || moved;
  }
}

/// Begins the next instruction of a queue if that can begin. True: the queue has done with a run.
bool RankQueues::go_on(Queue queue, std::int64_t now_ns, std::vector<Queue>& begun) {
  OfQueue& q = queues_[index_of(queue)];
  bool passed = false;
  while (!q.busy && q.run < started_) {
    const Run& run = run_of(q.run);
    const Program& program = *run.loaded->program;
    const bool computes = queue == Queue::compute;
    const bool at_end = q.position == list(queue).size();
    if (computes && !q.told) {
      const auto unmet =
          at_end
              ? std::nullopt
              : unmet_at_border(q.run, program.instructions[static_cast<std::size_t>(next(queue))]);
      stand(unmet, now_ns);
      if (unmet) return passed;
      for (Observer* observer : observers) observer->begin_program(program, run.step);
      q.told = true;
    }
    if (at_end) {
      finish_run(queue, now_ns);
      passed = true;
      continue;
    }
    const std::optional<Unmet> unmet = first_unmet(queue);
    if (computes) stand(unmet, now_ns);
    if (unmet) return passed;
    q.busy = true;
    q.begun_ns = now_ns;
    for (Observer* observer : observers) observer->begin(program, next(queue));
    begun.push_back(queue);
  }
  return passed;
}

void RankQueues::finish_run(Queue queue, std::int64_t now_ns) {
  OfQueue& q = queues_[index_of(queue)];
  run_of(q.run).done[index_of(queue)] = kFinished;
  ++q.run;
  q.position = 0;
  q.told = false;
  if (finished() > static_cast<std::int64_t>(ended_ns_.size())) ended_ns_.push_back(now_ns);
}

void RankQueues::end(Queue queue, std::int64_t now_ns) {
  OfQueue& q = queues_[index_of(queue)];
  STRATA_CHECK(q.busy, name_of(queue));
  Run& run = run_of(q.run);
  const std::int32_t instruction = next(queue);
  for (Observer* observer : observers) {
    observer->end(*run.loaded->program, instruction);
    observer->executed(*run.loaded->program, instruction, q.begun_ns, now_ns);
  }
  q.busy = false;
  run.done[index_of(queue)] = instruction;
  ++q.position;
}

std::optional<RankQueues::Unmet> RankQueues::first_unmet(Queue queue) const {
  const RunNumber number = of(queue).run;
  const Run& run = run_of(number);
  const Instruction& in = run.loaded->program->instructions[static_cast<std::size_t>(next(queue))];
  if (const auto unmet = unmet_of_run(run, in)) return unmet;
  return unmet_at_border(number, in);
}

std::optional<RankQueues::Unmet> RankQueues::unmet_of_run(const Run& run,
                                                          const Instruction& in) const {
  for (const std::int32_t other : in.waits) {
    const Queue on = run.loaded->program->instructions[static_cast<std::size_t>(other)].queue;
    if (run.done[index_of(on)] < other) return Unmet{on, other};
  }
  return {};
}

std::optional<RankQueues::Unmet> RankQueues::unmet_at_border(RunNumber run,
                                                             const Instruction& in) const {
  if (in.border_waits == 0 || run == 0) return {};
  for (const Queue on : kAllQueues)
    if ((in.border_waits >> index_of(on) & 1u) != 0 && of(on).run < run) return Unmet{on, -1};
  return {};
}

/// The compute queue stands still from now on for `unmet`, or no longer: tells how long it stood
/// still for something else.
void RankQueues::stand(std::optional<Unmet> unmet, std::int64_t now_ns) {
  OfQueue& q = queues_[index_of(Queue::compute)];
  if (unmet == q.stands_for) return;
  if (q.stands_for && now_ns > q.stood_since_ns)
    for (Observer* observer : observers)
      observer->waited(*run_of(q.run).loaded->program, next(Queue::compute), q.stands_for->on,
                       now_ns - q.stood_since_ns);
  q.stands_for = unmet;
  q.stood_since_ns = now_ns;
}

std::vector<std::string> RankQueues::waits() const {
  std::vector<std::string> all;
  for (const Queue queue : kAllQueues) {
    const OfQueue& q = of(queue);
    if (q.busy || q.run >= started_) continue;
    const Program& program = *run_of(q.run).loaded->program;
    const auto label = [&](std::int32_t i) {
      return "'" + program.instructions[static_cast<std::size_t>(i)].label + "'";
    };
    if (const auto unmet = first_unmet(queue))
      all.push_back(std::string(name_of(queue)) + ": " + label(next(queue)) + " of '" +
                    program.name + "' waits for " +
                    (unmet->instruction < 0 ? "the Program before, on "
                                            : label(unmet->instruction) + " on ") +
                    std::string(name_of(unmet->on)));
  }
  return all;
}

}  // namespace strata::runtime
