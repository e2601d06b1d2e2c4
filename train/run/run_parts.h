// The parts of one rank's run. training_run.cpp makes them one after another; run_engine,
// run_beginning, step_loop and run_end, which each handle one stretch of the run, share them.
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
#include "core/new_folders.h"
#include "runtime/execute/trace.h"
#include "train/engine/engine.h"
#include "train/run/beside_weights.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/corpus.h"
#include "train/run/earlier_plan.h"
#include "train/run/failed_save.h"
#include "train/run/late_failures.h"
#include "train/run/lost_steps.h"
#include "train/run/nonfinite_watch.h"
#include "train/run/output_folder.h"
#include "train/run/page_watch.h"
#include "train/run/resume_source.h"
#include "train/run/run_device.h"
#include "train/run/run_disk.h"
#include "train/run/run_listeners.h"
#include "train/run/step_meter.h"
#include "train/run/stop_request.h"
#include "train/run/training_run.h"
#include "train/run/transfer_ledger.h"

namespace strata::train {

/// The progress of a run.
struct RunPosition {
  std::int64_t first_step = 0;        ///< first step of this process
  std::int64_t consumed_samples = 0;  ///< samples consumed before that step
  std::int64_t steps_done = 0;
  bool stopped = false;  ///< all ranks agreed to stop
};

/// The step that the compute queue began last, counted from 1 (-1: none), for other threads.
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
  /// Hears signals that ask for a last checkpoint from here on. Borrows its arguments.
  RunParts(RunRequest& run_request, const RunListeners& who_hears);
  RunParts(const RunParts&) = delete;
  RunParts& operator=(const RunParts&) = delete;

  [[nodiscard]] bool stopped_early() const {
    return position.stopped && position.steps_done < options.steps;
  }
  /// Steps that were done before the run began: those of the checkpoint that it goes on from.
  [[nodiscard]] std::int64_t steps_before() const {
    return resume_point ? resume_point->state.step : 0;
  }
  /// Prints notes of device, disk and engine that are new since the last call.
  void print_notes();
  void print_notes(const std::vector<std::string>& notes) const;
  /// Tells an event in which a listener's failure costs no step: it becomes a late failure.
  void tell(const RunEvent& event);

  RunRequest& request;             ///< plan_memory makes settings in it
  PageWatch watch;                 ///< of the rank's status page
  Beat beat;                       ///< reaches that page
  TargetPlan target_plan;          ///< what plan_memory was asked for, and what it made
  std::string planned_anew_since;  ///< rank 0's: why it did not take a checkpoint's settings
  TrainOptions options;            ///< a copy: resuming may change the accumulation
  bool first;                      ///< this is rank 0
  const RunListeners& listeners;
  RunPosition position;

  // Observers of the engine, which must outlive it.
  StepUnderWay under_way;
  StepMeter meter;
  TransferLedger transfers;
  std::optional<runtime::TraceRecorder> first_steps;  ///< rank 0's, if it refines kept times

  Corpus corpus;
  // Files that are read at the start, since --model may be gone when a checkpoint is written.
  std::string model_config;      ///< text of config.json
  BesideWeights beside_weights;  ///< rank 0's, since it writes them
  std::string data_digest;
  std::unique_ptr<comm::Communicator> communicator;
  std::unique_ptr<RunDevice> device;
  std::unique_ptr<RunDisk> disk;
  std::optional<std::string> measured_of;  ///< rank 0's, once it is known (run_profile.h)
  machine::Machine machine;                ///< this rank's
  std::unique_ptr<Engine> engine;          // must come after what it borrows
  NewFolders folders;                      ///< rank 0's, for what it will write
  std::optional<OutputFolder> output;
  FailedSave failed_save;
  LostSteps lost_steps;
  std::optional<CheckpointSaver> saver;
  std::optional<ResumeSource> resume_source;
  std::optional<ResumePoint> resume_point;
  NonFiniteWatch nonfinite;
  std::optional<comm::SharedFailure> data_failure;  ///< because of which all ranks stopped
  LateFailures late_failures;

 private:
  void say_that_it_gives_up(const std::string& why) const;
  void say_what_is_lost(const char* signal) const;
  [[nodiscard]] std::string lost_text() const;

  std::set<std::string> notes_printed_;

 public:
  std::optional<StopRequest> stop;  // must come last: its thread uses the other members
};

}  // namespace strata::train
