// Writes to its status page where the rank is, so that the launcher can tell even after its death.
// On a device it shows the step that runs; instructions while that step is enqueued, and of
// recordings what the host sees of them while it waits.
#pragma once

#include <atomic>

#include "comm/communicator.h"
#include "core/rank_context.h"
#include "core/status_page.h"
#include "runtime/execute/observer.h"
#include "train/run/run_event.h"

namespace strata::train {

/// The page that the launcher made for this rank, or a new one without a launcher.
inline StatusPage status_page_of(const RankContext& context) {
  return context.status_fd >= 0 ? StatusPage::open(context.status_fd)
                                : StatusPage::create(context.rank, context.attempt);
}

/// A RunListener, which also observes the session's Programs. Borrows the page.
class StatusListener final : public runtime::Observer {
 public:
  explicit StatusListener(StatusPage& page) : page_(page) {}
  void operator()(const RunEvent& event);
  void starting(const runtime::Program&, std::int64_t) override { ++ahead_; }
  void begin_program(const runtime::Program& program, std::int64_t step) override {
    --ahead_;
    page_.set_step(step + 1);
    if (!enqueues_) return;
    page_.set_phase(program.name == "evaluate" ? Phase::evaluate : Phase::running);
    page_.set_instruction(-1, "");
  }
  void begin(const runtime::Program& program, int instruction) override {
    if (is_ahead()) return;
    const runtime::Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
    if (in.queue == runtime::Queue::communication) {
      page_.begin_collective(communicator_->begun() + 1, in.label);
      return;
    }
    if (in.queue != runtime::Queue::compute) return;  // the page has one writer per field
    page_.set_phase(phase_of(program, in.pass));
    page_.set_instruction(instruction, in.label);
  }
  [[nodiscard]] bool wants_marks() const override { return true; }
  void seen_begin(const runtime::Program& program, int instruction,
                  std::int64_t collective) override {
    const runtime::Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
    if (in.collective) {
      page_.begin_collective(collective, in.label);
      return;
    }
    page_.set_phase(phase_of(program, in.pass));
    page_.set_instruction(instruction, in.label);
  }
  void seen_end(const runtime::Program&, int) override { page_.end_collective(); }
  void end(const runtime::Program& program, int instruction) override {
    const runtime::Queue queue = program.instructions[static_cast<std::size_t>(instruction)].queue;
    if (queue == runtime::Queue::communication) page_.end_collective();
    if (queue == runtime::Queue::compute && !is_ahead()) page_.end_instruction();
  }

 private:
  void equip(const Equipping& equipping) {
    enqueues_ = !equipping.machine.host_is_device();
    if (enqueues_) page_.set_quiet(equipping.foreseen_seconds);
    communicator_ = &equipping.program_communicator;
    equipping.observers.push_back(this);
  }
  void show(const StepDone& step);

  /// True if a begin() is of work that a device gets while an earlier Program runs.
  [[nodiscard]] bool is_ahead() const { return enqueues_ && ahead_ > 0; }

  static Phase phase_of(const runtime::Program& program, runtime::Pass pass) {
    if (program.name == "evaluate") return Phase::evaluate;
    if (pass == runtime::Pass::forward) return Phase::forward;
    return pass == runtime::Pass::backward ? Phase::backward : Phase::update;
  }
  StatusPage& page_;
  bool enqueues_ = false;       ///< a device runs Programs after begin() and end()
  std::atomic<int> ahead_ = 0;  ///< Programs that were started and have not begun
  const comm::Communicator* communicator_ = nullptr;  ///< the Programs'; set once they exist
};

}  // namespace strata::train
