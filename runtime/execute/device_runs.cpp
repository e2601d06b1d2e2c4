#include "runtime/execute/device_runs.h"

namespace strata::runtime {

using kernels::EventUse;

DeviceRuns::DeviceRuns(kernels::Device& device, RunFailure& failure)
    : device_(device), failure_(failure) {
  for (DeviceRun& place : places_) {
    for (const int q : kDeviceQueues) {
      place.inputs_read[q] = device_.make_event(EventUse::host);
      place.ended[q] = device_.make_event(EventUse::host);
    }
    place.finished = device_.make_event(EventUse::host);
  }
}

DeviceRun& DeviceRuns::begin(RunNumber run, const DeviceProgram& program) {
  DeviceRun& place = of(run);
  place.program = &program;
  place.enqueued.reset();
  return place;
}

void DeviceRuns::release() {
  for (DeviceRun& place : places_) place.enqueued.advance(kFinished);
}

bool DeviceRuns::has_completed(RunNumber run, std::int32_t instruction) {
  DeviceRun& place = of(run);
  return is_poisoned() || (place.enqueued.has_reached(instruction) &&
                           device_.reached(*place.program->completed_event(run, instruction)));
}

void DeviceRuns::wait_completed(RunNumber run, std::int32_t instruction) {
  DeviceRun& place = of(run);
  place.enqueued.wait_for(instruction);
  if (!is_poisoned()) device_.wait_on_host(*place.program->completed_event(run, instruction));
}

void DeviceRuns::wait_ended(RunNumber run, Queue queue) {
  DeviceRun& place = of(run);
  place.enqueued.wait_for(kFinished);
  if (!is_poisoned()) device_.wait_on_host(*place.ended[static_cast<std::size_t>(queue)]);
}

void DeviceRuns::poison(const Instruction& instruction, const std::exception& error) {
  failure_.tell("instruction '" + instruction.label + "'", error);
}

}  // namespace strata::runtime
