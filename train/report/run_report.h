// The report of --memory-report: of a plan alone, or of a run with what it measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/seat.h"
#include "compile/step_programs.h"
#include "machine/machine.h"
#include "plan/layer_profile.h"
#include "train/config/resolve.h"
#include "train/engine/build_programs.h"
#include "train/report/foreseen_step.h"
#include "train/report/measured_run.h"
#include "train/report/program_timeline.h"

namespace strata::train {

/// The subject of a report, which outlives it.
struct ReportSubject {
  const ProgramRequest& request;
  const std::vector<ResolvedField>& settings;
  const compile::StepPrograms& programs;
  const machine::Machine& machine;
  comm::Seat seat;                 ///< of the rank whose Programs these are
  std::string device;              ///< for people
  std::int64_t process_bytes = 0;  ///< foreseen of the process, arenas included
};

struct RunReport {
  const compile::StepPrograms& programs;
  const machine::Machine& machine;
  const std::vector<ResolvedField>& settings;
  std::string model;   ///< as its option says
  std::string device;  ///< for people
  int rank = 0, ranks = 1;
  std::int64_t process_bytes = 0;  ///< foreseen of the process, arenas included
  std::vector<plan::LayerProfile> layers;
  ForeseenStep foreseen;
  std::vector<ProgramTimeline> timelines;  ///< of the training Programs of Plan::shape, in order
  MeasuredRun measured;                    ///< of a plan: empty
  std::string failure = {};  ///< why the run failed, or why the plan is refused; "": neither
};

/// Profiles layers (plan::profile_layers) and Programs. Without training Programs, as of an
/// evaluation alone, there are no layers and no timelines.
RunReport make_report(const ReportSubject& subject, ForeseenStep foreseen);

/// The bytes that a step saves for the backward pass, and its time, if layers are treated alike.
struct LayerMode {
  std::string name;
  std::int64_t kept_bytes = 0;   ///< of what a micro-batch saves, on the device
  std::int64_t freed_bytes = 0;  ///< of it that is not: made again, or in other tiers
  double step_seconds = 0;       ///< foreseen
};
/// Lists three modes: as planned; all kept; all layers made again. The time for what moves to other
/// tiers stays in.
std::vector<LayerMode> layer_modes(const RunReport& report);

/// The highest moment of a tier in all Programs.
struct PeakMoment {
  const ProgramTimeline* timeline = nullptr;  ///< null: there is none
  std::size_t instruction = 0;
  std::int64_t bytes = 0;
};
PeakMoment find_peak(const std::vector<ProgramTimeline>& timelines, runtime::Tier tier);

/// "instruction 123 of train.only: linear_backward (layer.3, backward)".
std::string describe_instruction(const runtime::Program& program, std::size_t instruction);

}  // namespace strata::train
