#include "train/report/run_report.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "comm/mesh.h"
#include "zero/micro_step.h"

namespace strata::train {

RunReport make_report(const ReportSubject& subject, ForeseenStep foreseen) {
  const compile::StepPrograms& programs = subject.programs;
  RunReport report{.programs = programs,
                   .machine = subject.machine,
                   .settings = subject.settings,
                   .model = subject.request.options.model,
                   .device = subject.device,
                   .rank = subject.seat.rank,
                   .ranks = subject.seat.ranks,
                   .process_bytes = subject.process_bytes,
                   .layers = {},
                   .foreseen = std::move(foreseen),
                   .timelines = {},
                   .measured = {},
                   .failure = {}};
  if (!programs.trains()) return report;
  const runtime::Plan& plan = programs.settings.plan;
  report.layers = plan::profile_layers(training_model(subject.request), subject.machine,
                                       comm::MeshSeat::of(subject.seat, plan.mesh), programs);
  std::set<zero::MicroStepKind> seen;
  for (const zero::MicroStep& step : zero::micro_steps(plan)) {
    if (!seen.insert(step.kind).second) continue;
    const runtime::Program& program = programs.train(step.kind);
    report.timelines.push_back(make_timeline(program, programs,
                                             zero::runs_per_step(plan, step.kind),
                                             report.foreseen.spans.at(program.name)));
  }
  return report;
}

std::vector<LayerMode> layer_modes(const RunReport& report) {
  using runtime::SavedAction;
  std::int64_t saved = 0, kept = 0, recomputable = 0;
  double spent = 0, possible = 0;
  for (const plan::LayerProfile& layer : report.layers) {
    for (const std::int64_t bytes : layer.saved_bytes) saved += bytes;
    kept += layer.saved(SavedAction::keep);
    recomputable += layer.recomputable_bytes;
    spent += layer.recompute_seconds;
    possible += layer.recomputable_seconds;
  }
  const double without = report.foreseen.seconds - spent;
  return {{"as planned", kept, saved - kept, report.foreseen.seconds},
          {"all kept", saved, 0, without},
          {"all layers recomputed", saved - recomputable, recomputable, without + possible}};
}

PeakMoment find_peak(const std::vector<ProgramTimeline>& timelines, runtime::Tier tier) {
  PeakMoment peak;
  for (const ProgramTimeline& timeline : timelines) {
    if (timeline.live.empty()) continue;
    const std::size_t at = timeline.peak(tier);
    const std::int64_t bytes = timeline.bytes(tier, at);
    if (peak.timeline == nullptr || bytes > peak.bytes) peak = {&timeline, at, bytes};
  }
  return peak;
}

std::string describe_instruction(const runtime::Program& program, std::size_t instruction) {
  const runtime::Instruction& in = program.instructions[instruction];
  return fmt::format("instruction {} of {}: {} ({}, {})", instruction, program.name, in.label,
                     program.blocks[static_cast<std::size_t>(in.block)], name_of(in.pass));
}

}  // namespace strata::train
