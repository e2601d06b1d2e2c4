#include "train/run/plan_report.h"

#include <fmt/core.h>

#include "core/file.h"
#include "train/data/sample_order.h"
#include "train/engine/memory_report.h"
#include "train/planning/planning_text.h"
#include "train/run/format_number.h"

namespace strata::train {
namespace {

std::string counted(std::int64_t count, const std::string& what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

/// Names one or two files; for more the first and how many others there are.
std::string names(const std::vector<std::string>& files) {
  if (files.empty()) return "the text of this installation";
  if (files.size() <= 2) return files.front() + (files.size() == 2 ? " and " + files.back() : "");
  return fmt::format("{} and {} other files", files.front(), files.size() - 1);
}

std::string describe_model(const TrainOptions& options, const compile::StepPrograms& programs,
                           const RunFacts& facts) {
  std::int64_t parameters = 0;
  for (const runtime::ParameterUnit& unit : programs.units)
    for (const runtime::Segment& segment : unit.segments) parameters += segment.elements;
  std::string text =
      options.model + ": " +
      (parameters < 1'000'000
           ? grouped(parameters) + " parameters, "
           : format_number("%.1f M parameters, ", static_cast<double>(parameters) / 1e6)) +
      std::string(name_of(options.dtype)) +
      (options.plan.empty() ? fmt::format(", ZeRO-{}", options.zero.stage)
                            : ", sharded as the Plan in " + options.plan + " says,") +
      " over ";
  if (options.virtual_ranks > 0) text += counted(options.virtual_ranks, "virtual rank") + " on ";
  return text + counted(facts.ranks, "rank") + " (" + facts.transport + ")\n";
}

std::int64_t samples_per_epoch(const TrainOptions& options, const RunFacts& facts) {
  SampleOrderOptions order;
  order.sequence = options.sequence_length;
  return SampleOrder(*facts.tokens, names(options.data), order).windows();
}

std::string describe_data(const TrainOptions& options, const RunFacts& facts) {
  if (!facts.tokens) return "";
  std::string text = "data: " + names(options.data) + ", " + counted(*facts.tokens, "token") +
                     ", " + counted(samples_per_epoch(options, facts), "sample") + " of " +
                     grouped(options.sequence_length) + " per epoch";
  if (facts.held_out_tokens)
    text += "; held out: " + (options.eval_data.empty() ? "" : options.eval_data + ", ") +
            counted(*facts.held_out_tokens, "token");
  return text + "\n";
}

std::string describe_steps(const TrainOptions& options, const RunFacts& facts) {
  const std::int64_t samples = options.steps * options.global_batch;
  std::string text =
      fmt::format("training: {} of {} ({} x micro-batch {} x accumulation {}), {}",
                  counted(options.steps, "step"), counted(options.global_batch, "sample"),
                  options.virtual_ranks > 0 ? counted(options.virtual_ranks, "virtual rank")
                                            : counted(facts.ranks, "rank"),
                  options.micro_batch, options.accumulation,
                  counted(samples * options.sequence_length, "token"));
  if (facts.tokens)
    text +=
        format_number(", %.3g epochs", static_cast<double>(samples) /
                                           static_cast<double>(samples_per_epoch(options, facts)));
  return text + "\n";
}

}  // namespace

void print_plan(const ResolvedConfig& config, const TrainOptions& options,
                const compile::StepPrograms& programs, const RunFacts& facts,
                const RunListeners& listeners) {
  if (options.print_config) listeners.print(describe(config));
  if (options.print_plan) listeners.print(programs.settings.plan.to_json());
  if (options.print_program)
    for (const auto& [key, program] : programs.programs)
      if (key.kind == compile::ProgramKind::train) listeners.print(program.to_string());
  listeners.print(describe_plan(options, programs, facts));
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > 3 + sign;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string describe_plan(const TrainOptions& options, const compile::StepPrograms& programs,
                          const RunFacts& facts) {
  std::string text = describe_model(options, programs, facts) + describe_data(options, facts) +
                     describe_steps(options, facts);
  const auto tokens = static_cast<double>(options.global_batch * options.sequence_length);
  text += format_number("foreseen: %.3g s per step", facts.foreseen_seconds) + ", " +
          rate_text(tokens / facts.foreseen_seconds) + " tokens/s, at " +
          std::string(name_of(facts.rates)) + " rates\n";
  if (const double decay = options.optimizer.weight_decay; decay > 0)
    text +=
        format_number("weight decay: %g on matrices, ", decay) +
        format_number("%g on norms and biases\n", options.no_decay == NoDecay::none ? decay : 0.0);
  text += "device: " + facts.device + "\n";
  if (!facts.place.empty()) text += "memory near rank 0: " + facts.place + "\n";
  if (!facts.disk.empty()) text += "disk: " + facts.disk + "\n";
  if (!facts.drive_wear.empty()) text += "drives: " + facts.drive_wear + "\n";
  return text + "memory planned for rank 0:\n" + format_memory(count_memory(programs));
}

void write_plan(const TrainOptions& options, const runtime::Plan& plan) {
  if (!options.write_plan.empty()) write_file_atomically(options.write_plan, plan.to_json() + "\n");
}

}  // namespace strata::train
