#include "runtime/execute/device_program.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace strata::runtime {
namespace {

using kernels::EventUse;

/// Makes the events with which `in` waits for instruction `other`.
void make_events(DeviceProgram& p, const Instruction& in, std::int32_t other,
                 kernels::Device& device) {
  const auto o = static_cast<std::size_t>(other);
  if (is_host_queue(p.program.instructions[o].queue)) return;
  if (is_host_queue(in.queue)) {
    for (auto& completed : p.completed)
      if (!completed[o]) completed[o] = device.make_event(EventUse::host);
  } else if (!p.reached[o]) {
    p.reached[o] = device.make_event(EventUse::order);
  }
}

/// Numbers collectives that run on streams.
void number_collectives(DeviceProgram& p) {
  std::int64_t number = 0;
  for (const BoundInstruction& bound : p.bound) {
    if (bound.communicator != nullptr && !bound.communicator->runs_on_host()) {
      if (p.communicator == nullptr) p.communicator = bound.communicator;
      number += bound.communicator == p.communicator ? 1 : 0;
    }
    p.collective_number.push_back(number);
  }
}

/// Cuts the list at instructions that the host runs, and after the last one that reads inputs.
void cut(DeviceProgram& p) {
  const auto count = static_cast<std::int32_t>(p.bound.size());
  Stretch open;
  const auto close = [&](std::int32_t at) {
    open.last = at;
    if (open.last > open.first) p.stretches.push_back(std::move(open));
    open = Stretch{at, at, false, nullptr};
  };
  for (std::int32_t i = 0; i < count; ++i) {
    if (i == p.inputs_end) close(i);
    const comm::Communicator* communicator = p.bound[static_cast<std::size_t>(i)].communicator;
    if (communicator == nullptr || !communicator->runs_on_host()) continue;
    close(i);
    open.on_host = true;
    close(i + 1);
  }
  close(count);
}

}  // namespace

std::unique_ptr<DeviceProgram> make_device_program(Program program, const ExecutorParts& parts,
                                                   kernels::Device& device) {
  auto made = std::make_unique<DeviceProgram>();
  made->program = std::move(program);
  const Program& p = made->program;
  made->reached.resize(p.instructions.size());
  for (auto& completed : made->completed) completed.resize(p.instructions.size());
  for (std::size_t i = 0; i < p.instructions.size(); ++i) {
    const Instruction& in = p.instructions[i];
    made->bound.push_back(bind_instruction(p, in, parts, device.kernels(), device.backend()));
    if (in.predicate && !in.operation->predicated)
      throw InternalError("instruction '" + in.label + "' is predicated, which operation '" +
                          std::string(in.operation->name) + "' does not know");
    for (std::int32_t other : in.waits) make_events(*made, in, other, device);
    if (reads_staged_input(p, in) && !is_host_queue(in.queue))
      made->inputs_end = static_cast<std::int32_t>(i) + 1;
  }
  number_collectives(*made);
  made->on_host = host_program(p, made->bound);
  cut(*made);
  return made;
}

}  // namespace strata::runtime
