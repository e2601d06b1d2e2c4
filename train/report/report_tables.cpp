#include "train/report/report_tables.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace strata::train {
namespace {

using plan::LayerProfile;
using runtime::Tier;

constexpr double kMsPerSecond = 1e3;

LayerProfile total_of(const std::vector<LayerProfile>& layers) {
  LayerProfile total{.block = "total"};
  for (const LayerProfile& layer : layers) {
    total.parameter_bytes += layer.parameter_bytes;
    total.gradient_bytes += layer.gradient_bytes;
    total.optimizer_bytes += layer.optimizer_bytes;
    for (std::size_t action = 0; action < plan::kSavedActions; ++action)
      total.saved_bytes[action] += layer.saved_bytes[action];
    total.flops += layer.flops;
    total.forward_seconds += layer.forward_seconds;
    total.backward_seconds += layer.backward_seconds;
    total.update_seconds += layer.update_seconds;
    total.moving_seconds += layer.moving_seconds;
    total.recompute_seconds += layer.recompute_seconds;
    total.recomputable_bytes += layer.recomputable_bytes;
    total.recomputable_seconds += layer.recomputable_seconds;
  }
  return total;
}

std::string layer_row(const LayerProfile& layer) {
  const auto ms = [](double seconds) { return kMsPerSecond * seconds; };
  return fmt::format("{},{},{},{},{},{:.0f},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{},{:.6g}\n",
                     csv_field(layer.block), layer.parameter_bytes, layer.gradient_bytes,
                     layer.optimizer_bytes, fmt::join(layer.saved_bytes, ","), layer.flops,
                     ms(layer.forward_seconds), ms(layer.backward_seconds),
                     ms(layer.update_seconds), ms(layer.moving_seconds),
                     ms(layer.recompute_seconds), layer.freed_bytes_per_ms(),
                     layer.recomputable_bytes, ms(layer.recomputable_seconds));
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : "nan";
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string layers_csv(const std::vector<LayerProfile>& layers) {
  std::string text =
      "block,parameter_bytes,gradient_bytes,optimizer_bytes,saved_keep_bytes,"
      "saved_recompute_bytes,saved_host_bytes,saved_disk_bytes,step_flops,forward_ms,backward_ms,"
      "update_ms,moving_ms,recompute_ms,freed_bytes_per_ms,recomputable_bytes,recomputable_ms\n";
  for (const LayerProfile& layer : layers) text += layer_row(layer);
  return text + layer_row(total_of(layers));
}

std::string timeline_csv(const std::vector<ProgramTimeline>& timelines) {
  std::string text = "program,instruction,label,queue,block,pass";
  for (const Tier tier : runtime::kAllTiers) text += fmt::format(",{}_bytes", name_of(tier));
  for (const Tier tier : runtime::kAllTiers)
    for (const Purpose purpose : kAllPurposes)
      text += fmt::format(",{}_{}_bytes", name_of(tier), name_of(purpose));
  text += ",foreseen_begin_ms,foreseen_end_ms,measured_begin_ms,measured_end_ms,measured_mean_ms\n";
  const auto out = std::back_inserter(text);
  for (const ProgramTimeline& timeline : timelines) {
    const runtime::Program& program = *timeline.program;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const runtime::Instruction& in = program.instructions[i];
      fmt::format_to(out, "{},{},{},{},{},{}", csv_field(program.name), i, csv_field(in.label),
                     name_of(in.queue),
                     csv_field(program.blocks[static_cast<std::size_t>(in.block)]),
                     name_of(in.pass));
      for (const Tier tier : runtime::kAllTiers)
        fmt::format_to(out, ",{}", timeline.bytes(tier, i));
      for (const PurposeBytes& bytes : timeline.live[i])
        fmt::format_to(out, ",{}", fmt::join(bytes, ","));
      fmt::format_to(out, ",{:.6f},{:.6f},", timeline.foreseen[i].begin_ms,
                     timeline.foreseen[i].end_ms);
      if (!timeline.measured.empty() && timeline.measured[i])
        fmt::format_to(out, "{:.6f},{:.6f},", timeline.measured[i]->begin_ms,
                       timeline.measured[i]->end_ms);
      else
        text += ",,";
      if (!timeline.measured_ms.empty() && timeline.measured_ms[i])
        fmt::format_to(out, "{:.6f}", *timeline.measured_ms[i]);
      text += '\n';
    }
  }
  return text;
}

std::string operations_csv(const std::vector<OperationTotal>& operations) {
  std::string text = "operation,pass,queue,instructions,foreseen_ms,measured_ms\n";
  for (const OperationTotal& row : operations)
    text += fmt::format("{},{},{},{:.6g},{:.6f},{}\n", csv_field(row.operation), row.pass,
                        row.queue, row.instructions, row.foreseen_ms,
                        row.measured_ms ? fmt::format("{:.6f}", *row.measured_ms) : "");
  return text;
}

std::string steps_csv(const RunReport& report) {
  std::string text = "step,loss,learning_rate,grad_norm,seconds,tokens_per_second,foreseen_seconds";
  std::string arenas;
  for (const Tier tier : runtime::kAllTiers) {
    text += fmt::format(",{}_arena_bytes", name_of(tier));
    arenas += fmt::format(",{}", report.programs.taken_bytes(tier));
  }
  text += ",peak_rss_bytes,device_bytes\n";
  const std::string foreseen =
      report.foreseen.seconds > 0 ? number(report.foreseen.seconds) : std::string();
  for (const StepRow& row : report.measured.steps)
    text += fmt::format("{},{},{},{},{:.6f},{:.1f},{}{},{},{}\n", row.step, number(row.loss),
                        number(row.learning_rate), number(row.gradient_norm), row.seconds,
                        row.tokens_per_second, foreseen, arenas, row.peak_rss_bytes,
                        row.device_bytes ? std::to_string(*row.device_bytes) : "");
  return text;
}

}  // namespace strata::train
