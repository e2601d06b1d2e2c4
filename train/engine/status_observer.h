// Writes where the rank is to its status page, so that the launcher can tell after its death.
#pragma once

#include "comm/communicator.h"
#include "core/status_page.h"
#include "runtime/execute/observer.h"

namespace strata::train {

class StatusObserver final : public runtime::Observer {
 public:
  /// `communicator`: of the Programs' collectives, which it numbers. Both outlive the executor.
  StatusObserver(StatusPage& page, const comm::Communicator& communicator)
      : page_(page), communicator_(communicator) {}
  void begin_program(const runtime::Program&, std::int64_t step) override {
    page_.set_step(step + 1);
  }
  void begin(const runtime::Program& program, int instruction) override {
    const runtime::Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
    if (in.queue == runtime::Queue::communication) {
      page_.begin_collective(communicator_.begun() + 1, in.label);
      return;
    }
    if (in.queue != runtime::Queue::compute) return;  // the page has one writer per field
    page_.set_phase(phase_of(program, in.pass));
    page_.set_instruction(instruction, in.label);
  }
  void end(const runtime::Program& program, int instruction) override {
    if (program.instructions[static_cast<std::size_t>(instruction)].queue ==
        runtime::Queue::communication)
      page_.end_collective();
  }

 private:
  static Phase phase_of(const runtime::Program& program, runtime::Pass pass) {
    if (program.name == "evaluate") return Phase::evaluate;
    if (pass == runtime::Pass::forward) return Phase::forward;
    return pass == runtime::Pass::backward ? Phase::backward : Phase::update;
  }
  StatusPage& page_;
  const comm::Communicator& communicator_;
};

}  // namespace strata::train
