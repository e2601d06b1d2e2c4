#include "train/run/run_end.h"

#include <cstdio>
#include <string>

#include "core/file.h"
#include "train/engine/state_digest.h"
#include "train/run/run_checkpoint.h"

namespace strata::train {
namespace {

/// Rank 0 writes the named file, others NAME.rankR beside it.
std::string trace_path(const RunParts& run) {
  return run.first ? run.options.trace
                   : run.options.trace + ".rank" + std::to_string(run.request.context.rank);
}

}  // namespace

void finish(RunParts& run) {
  const TrainOptions& options = run.options;
  save(run, true);
  if (run.stop) run.stop->saved();
  if (!options.dump_state.empty()) {
    const std::string state = describe_state(*run.engine);
    if (run.first) write_file_atomically(options.dump_state, state);
  }
  if (options.check_device && run.first)
    std::printf("the device agrees with the CPU in %lld steps:\n%s",
                static_cast<long long>(run.position.steps_done), run.lockstep.to_string().c_str());
  if (!options.trace.empty()) run.trace->write(trace_path(run));
  if (run.stopped_early() && run.first)
    std::printf("stopped on request after step %lld of %lld%s\n",
                static_cast<long long>(run.position.steps_done),
                static_cast<long long>(options.steps),
                options.output.empty() ? "; without --output its weights are lost" : "");
  run.engine->forget_recordings();
  run.device->close();
  run.communicator->close();  // nobody leaves before all have written; MPI insists on it
  run.status.set_phase(Phase::done);
}

}  // namespace strata::train
