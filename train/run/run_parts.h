// What one rank's run is made of. training_run.cpp makes the parts one after the other; the files
// that know one stretch of the run each (run_engine, run_beginning, step_loop, run_end) share them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/fail_together.h"
#include "train/engine/engine.h"
#include "train/run/beside_weights.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/corpus.h"
#include "train/run/late_failures.h"
#include "train/run/nonfinite_watch.h"
#include "train/run/output_folder.h"
#include "train/run/resume_source.h"
#include "train/run/run_device.h"
#include "train/run/run_disk.h"
#include "train/run/run_listeners.h"
#include "train/run/step_meter.h"
#include "train/run/stop_request.h"
#include "train/run/training_run.h"
#include "train/run/transfer_ledger.h"

namespace strata::train {

/// How far a run is.
struct RunPosition {
  std::int64_t first_step = 0;        ///< of this process
  std::int64_t consumed_samples = 0;  ///< before that step
  std::int64_t steps_done = 0;
  bool stopped = false;  ///< all ranks agreed to stop
};

/// The step that the compute queue took up last, counted from 1, for threads beside the run; -1:
/// none yet.
class StepUnderWay final : public runtime::Observer {
 public:
  void begin_program(const runtime::Program&, std::int64_t step) override { step_ = step + 1; }
  void begin(const runtime::Program&, int) override {}
  void end(const runtime::Program&, int) override {}
  [[nodiscard]] std::int64_t step() const { return step_; }

 private:
  std::atomic<std::int64_t> step_{-1};
};

struct RunParts {
  /// From here on signals that ask for a last checkpoint are heard. Borrows all.
  RunParts(const RunRequest& run_request, const RunListeners& who_hears);
  RunParts(const RunParts&) = delete;
  RunParts& operator=(const RunParts&) = delete;

  [[nodiscard]] bool stopped_early() const {
    return position.stopped && position.steps_done < options.steps;
  }
  /// Notes of device, disk and engine that are new since the last call.
  void print_notes();
  void print_notes(const std::vector<std::string>& notes) const;
  /// An event for which a listener that fails costs no step: a late failure.
  void tell(const RunEvent& event);

  const RunRequest& request;
  TrainOptions options;  ///< a copy: resuming may change the accumulation
  bool first;            ///< rank 0
  const RunListeners& listeners;
  RunPosition position;

  // Whatever observes the engine lives longer than it.
  StepUnderWay under_way;
  StepMeter meter;
  TransferLedger transfers;

  Corpus corpus;
  // Read at the start: --model may be gone when a checkpoint is written.
  std::string model_config;      ///< text of config.json
  BesideWeights beside_weights;  ///< rank 0's, which writes them
  std::string data_digest;
  std::unique_ptr<comm::Communicator> communicator;
  std::unique_ptr<RunDevice> device;
  std::unique_ptr<RunDisk> disk;
  machine::Machine machine;        ///< as this rank has it
  std::unique_ptr<Engine> engine;  // after what it borrows
  std::optional<OutputFolder> output;
  std::optional<CheckpointSaver> saver;
  std::optional<ResumeSource> resume_source;
  std::optional<ResumePoint> resume_point;
  NonFiniteWatch nonfinite;
  std::optional<comm::SharedFailure> data_failure;  ///< for which all ranks stopped
  LateFailures late_failures;

 private:
  [[noreturn]] void give_up(const std::string& why);
  void say_what_is_lost() const;

  std::set<std::string> notes_printed_;

 public:
  std::optional<StopRequest> stop;  // last: its thread looks at the others
};

}  // namespace strata::train
