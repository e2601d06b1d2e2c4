#include "train/run/plan_report.h"

#include <cstdio>

#include "train/engine/memory_report.h"

namespace strata::train {

std::string describe_plan(const TrainOptions& options, const ProgramSet& programs,
                          const RunFacts& facts) {
  std::int64_t parameters = 0;
  for (const runtime::ParameterUnit& unit : programs.units)
    for (const runtime::Segment& segment : unit.segments) parameters += segment.elements;
  char numbers[256];
  std::snprintf(numbers, sizeof numbers, ": %.1f M parameters, %s, ZeRO-%lld over ",
                static_cast<double>(parameters) / 1e6, std::string(name_of(options.dtype)).c_str(),
                static_cast<long long>(options.zero.stage));
  std::string text = options.model + numbers;
  if (options.virtual_ranks > 0)
    text += std::to_string(options.virtual_ranks) + " virtual ranks on ";
  text += std::to_string(facts.ranks) + (facts.ranks == 1 ? " rank (" : " ranks (") +
          facts.transport + ")";
  std::snprintf(numbers, sizeof numbers,
                ", %lld x %lld tokens per micro-step, accumulation %lld, gradient clipping %g\n"
                "weight decay %g on matrices, %g on norms and biases\n",
                static_cast<long long>(options.micro_batch),
                static_cast<long long>(options.sequence_length),
                static_cast<long long>(options.accumulation), options.gradient_clipping,
                options.optimizer.weight_decay,
                options.no_decay == NoDecay::none ? options.optimizer.weight_decay : 0.0);
  text += numbers;
  text += "device: " + facts.device + "\n";
  if (!facts.place.empty()) text += "memory near rank 0: " + facts.place + "\n";
  if (!facts.disk.empty()) text += "disk: " + facts.disk + "\n";
  return text + "memory planned for rank 0:\n" + format_memory(count_memory(programs));
}

}  // namespace strata::train
