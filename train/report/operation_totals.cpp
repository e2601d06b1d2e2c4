#include "train/report/operation_totals.h"

#include <map>
#include <tuple>

namespace strata::train {
namespace {

void add_instruction(const ProgramTimeline& timeline, std::size_t i, OperationTotal& row) {
  row.instructions += timeline.runs_per_step;
  row.foreseen_ms +=
      timeline.runs_per_step * (timeline.foreseen[i].end_ms - timeline.foreseen[i].begin_ms);
  if (timeline.measured_ms.empty() || !timeline.measured_ms[i])
    row.measured_ms.reset();
  else if (row.measured_ms)
    *row.measured_ms += timeline.runs_per_step * *timeline.measured_ms[i];
}

}  // namespace

std::vector<OperationTotal> operation_totals(const std::vector<ProgramTimeline>& timelines) {
  std::vector<OperationTotal> rows;
  std::map<std::tuple<std::string, runtime::Pass, runtime::Queue>, std::size_t> places;
  for (const ProgramTimeline& timeline : timelines)
    for (std::size_t i = 0; i < timeline.program->instructions.size(); ++i) {
      const runtime::Instruction& in = timeline.program->instructions[i];
      const std::string operation(in.operation->name);
      const auto [place, is_new] = places.try_emplace({operation, in.pass, in.queue}, rows.size());
      if (is_new)
        rows.push_back({.operation = operation,
                        .pass = std::string(name_of(in.pass)),
                        .queue = std::string(name_of(in.queue)),
                        .measured_ms = 0.0});
      add_instruction(timeline, i, rows[place->second]);
    }
  return rows;
}

}  // namespace strata::train
