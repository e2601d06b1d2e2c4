// Checks that every JSON key that docs/configuration.md calls obeyed changes an option, or is
// refused because it contradicts something. (tests/options_read_test.py checks that training code
// reads every option, option_effects_test.cpp that it reaches the Plan or the Programs.)
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/file.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "train/config/key_table.h"
#include "train/config/option_fields.h"
#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

/// JSON values by path, sorted so that a section's members are adjacent.
using Document = std::map<std::string, std::string>;

std::string section(const Document& document, const std::string& prefix) {
  std::string text;
  for (auto it = document.lower_bound(prefix); it != document.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    const std::string rest = it->first.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    const std::string name = rest.substr(0, dot);
    const std::string member = "\"" + name + "\": ";
    if (text.find(member) != std::string::npos && dot != std::string::npos) continue;
    text += (text.empty() ? "" : ", ") + member;
    text += dot == std::string::npos ? it->second : section(document, prefix + name + ".");
  }
  return "{" + text + "}";
}

/// Names and values of all options, or the refusal.
std::string outcome(const Document& document) {
  try {
    std::string text;
    for (const ResolvedField& field : resolve_text(section(document, "")).fields)
      text += field.name + " = " + field.value + "\n";
    return text;
  } catch (const Error& error) {
    return std::string("refused: ") + error.what();
  }
}

const Document kStage3{{"zero_optimization.stage", "3"}};
const Document kFp16{{"fp16.enabled", "true"}};
const Document kBf16{{"bf16.enabled", "true"}};
const Document kSgd{{"optimizer.type", "\"SGD\""}, {"optimizer.params.momentum", "0.9"}};
const Document kOffload{{"zero_optimization.stage", "3"},
                        {"zero_optimization.offload_optimizer.device", "\"nvme\""},
                        {"zero_optimization.offload_param.device", "\"nvme\""},
                        {"zero_optimization.offload_optimizer.nvme_path", "\"/a\""},
                        {"zero_optimization.offload_param.nvme_path", "\"/a\""}};
const Document kRecompute{{"strata.activation_checkpointing", "true"}};
Document scheduler(const std::string& type) { return {{"scheduler.type", "\"" + type + "\""}}; }
const Document kDecay{{"scheduler.type", "\"WarmupCosineLR\""},
                      {"scheduler.params.total_num_steps", "90"}};
const Document kCycle{{"scheduler.type", "\"OneCycle\""},
                      {"scheduler.params.cycle_min_lr", "0.1"},
                      {"scheduler.params.cycle_max_lr", "0.2"},
                      {"scheduler.params.cycle_momentum", "false"}};

struct Case {
  std::string value;  ///< another than the default; empty: other_value() makes one
  Document beside = {};
};

/// Keys that need a special value, or other keys beside them.
const std::map<std::string, Case> kCases{
    {"communication_data_type", {"\"bf16\""}},
    {"data_parallel_size", {"2"}},
    {"data_types.grad_accum_dtype", {"\"bf16\"", kBf16}},
    {"data_types.param_dtype", {"\"fp16\""}},
    {"optimizer.type", {"\"Lion\""}},
    {"optimizer.params.betas", {"[0.8, 0.9]"}},
    {"optimizer.params.dampening", {"0.5", kSgd}},
    {"optimizer.params.nesterov", {"true", kSgd}},
    {"optimizer.params.momentum", {"0.5", {{"optimizer.type", "\"SGD\""}}}},
    {"optimizer.params.adam_w_mode", {"false", {{"optimizer.type", "\"Adam\""}}}},
    {"optimizer.params.torch_adam", {"true", {{"optimizer.type", "\"AdamW\""}}}},
    {"scheduler.type", {"\"WarmupLR\""}},
    {"scheduler.params.warmup_min_lr", {"1e-5", scheduler("WarmupLR")}},
    {"scheduler.params.warmup_max_lr", {"0.5", scheduler("WarmupLR")}},
    {"scheduler.params.warmup_num_steps", {"7", scheduler("WarmupLR")}},
    {"scheduler.params.warmup_type", {"\"linear\"", scheduler("WarmupLR")}},
    {"scheduler.params.total_num_steps", {"77", kDecay}},
    {"scheduler.params.warmup_min_ratio", {"0.1", kDecay}},
    {"scheduler.params.cos_min_ratio", {"0.1", kDecay}},
    {"scheduler.params.lr_range_test_min_lr", {"0.5", scheduler("LRRangeTest")}},
    {"scheduler.params.lr_range_test_step_size", {"7", scheduler("LRRangeTest")}},
    {"scheduler.params.lr_range_test_step_rate", {"2", scheduler("LRRangeTest")}},
    {"scheduler.params.lr_range_test_staircase", {"true", scheduler("LRRangeTest")}},
    {"scheduler.params.cycle_min_lr", {"0.15", kCycle}},
    {"scheduler.params.cycle_max_lr", {"0.3", kCycle}},
    {"scheduler.params.decay_lr_rate", {"0.3", kCycle}},
    {"scheduler.params.cycle_first_step_size", {"7", kCycle}},
    {"scheduler.params.cycle_second_step_size", {"7", kCycle}},
    {"scheduler.params.cycle_first_stair_count", {"7", kCycle}},
    {"scheduler.params.cycle_second_stair_count", {"7", kCycle}},
    {"scheduler.params.decay_step_size", {"7", kCycle}},
    {"scheduler.params.cycle_momentum", {"true", kCycle}},
    {"fp16.enabled", {"true"}},
    {"fp16.loss_scale", {"128", kFp16}},
    {"fp16.initial_scale_power", {"7", kFp16}},
    {"fp16.loss_scale_window", {"7", kFp16}},
    {"fp16.hysteresis", {"7", kFp16}},
    {"fp16.consecutive_hysteresis", {"true", kFp16}},
    {"fp16.min_loss_scale", {"7", kFp16}},
    {"bf16.enabled", {"true"}},
    {"bf16.check_grad_overflow", {"false", kBf16}},
    {"zero_optimization.overlap_comm", {"false", kStage3}},
    {"zero_optimization.mics_shard_size", {"4", kStage3}},
    {"zero_optimization.offload_optimizer.device", {"\"cpu\""}},
    {"zero_optimization.offload_optimizer.nvme_path", {"\"/b\"", kOffload}},
    {"zero_optimization.offload_optimizer.ratio", {"0.5", kOffload}},
    {"zero_optimization.offload_param.device", {"\"cpu\"", kStage3}},
    {"zero_optimization.offload_param.nvme_path", {"\"/b\"", kOffload}},
    {"zero_optimization.offload_param.max_in_cpu", {"7", kOffload}},
    {"zero_optimization.cpu_offload", {"true"}},
    {"zero_optimization.cpu_offload_param", {"true", kStage3}},
    {"autotuning.enabled", {"true"}},
    {"activation_checkpointing.number_checkpoints", {"1", kRecompute}},
    {"activation_checkpointing.cpu_checkpointing", {"true", kRecompute}},
    {"aio.block_size", {"2097152", kOffload}},
    {"aio.queue_depth", {"7", kOffload}},
    {"tensorboard.output_path", {"\"x\"", {{"tensorboard.enabled", "true"}}}},
    {"tensorboard.job_name", {"\"x\"", {{"tensorboard.enabled", "true"}}}},
    {"csv_monitor.output_path", {"\"x\"", {{"csv_monitor.enabled", "true"}}}},
    {"csv_monitor.job_name", {"\"x\"", {{"csv_monitor.enabled", "true"}}}},
    {"strata.activation_checkpointing.segments", {"1"}},
    {"strata.activation_checkpointing.ratio", {"0.5"}},
    {"strata.actions", {R"([{"blocks": [1, 2], "actions": {"0.norm": "recompute"}}])"}},
    {"strata.reduction", {"\"native\""}},
    {"strata.virtual_ranks", {"2"}},
    {"strata.no_decay", {"\"none\""}},
    {"strata.state_recipe", {"\"packed-master\"", kBf16}},
    {"strata.calibrate", {"\"again\""}},
    {"strata.memory_report", {"\"reports\""}},
    {"strata.target_memory", {"\"24GB\""}},
    {"strata.strategy", {"\"conservative\""}},
    {"strata.allow_lossy",
     {"[\"8bit\"]", {{"strata.target_memory", "\"24GB\""}, {"bf16.enabled", "true"}}}},
    {"strata.allow_offload", {"\"host\"", {{"strata.target_memory", "\"24GB\""}}}},
    {"strata.device", {"\"cpu\""}},
    {"strata.tile_elements", {"2048"}},
    {"strata.offload_activations", {"\"cpu\""}},
    {"strata.nvme_paths", {"[\"/b\"]", kOffload}},
    {"strata.device_memory", {"\"24GB\""}},
    {"strata.host_memory", {"\"24GB\""}},
    {"strata.update_time", {"\"step_end\""}},
    {"strata.save_every", {"7"}},
    {"strata.on_save_error", {"\"stop\""}},
    {"strata.on_nonfinite", {"\"stop\""}},
};

/// The opposite of a flag's default, or the next number after a number's.
std::string other_value(const KeyRow& row) {
  TrainOptions defaults;
  const std::vector<OptionField> fields = option_fields(defaults);
  const OptionField* field = find_field(fields, row.target);
  if (field == nullptr) return "";
  if (row.shape == JsonShape::flag) return text_of(*field) == "true" ? "false" : "true";
  if (row.shape != JsonShape::number) return "";
  if (std::holds_alternative<double*>(field->target))
    return json_number(*std::get<double*>(field->target) / 2 + 0.001);
  if (!std::holds_alternative<std::int64_t*>(field->target)) return "";
  const std::int64_t number = *std::get<std::int64_t*>(field->target);
  return std::to_string(number < 1'000'000 ? number + 1 : number - 1);
}

/// The keys that the page's table calls obeyed, without sections.
std::vector<std::string> obeyed_keys() {
  std::istringstream page(read_whole_file(STRATA_CONFIGURATION_PAGE, 1 << 20));
  std::vector<std::string> keys;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## JSON keys";
    const std::size_t end = line.find("` | obeyed |");
    if (!inside || !line.starts_with("| `") || end == std::string::npos) continue;
    const std::string key = line.substr(3, end - 3);
    const KeyRow* row = find_key(key);
    if (row != nullptr && row->shape != JsonShape::section) keys.push_back(key);
  }
  return keys;
}

TEST(ObeyedKeys, EachChangesAnOptionOrIsRefused) {
  const std::vector<std::string> keys = obeyed_keys();
  ASSERT_GT(keys.size(), 100u);
  for (const std::string& key : keys) {
    SCOPED_TRACE(key);
    const auto found = kCases.find(key);
    const Case example = found != kCases.end() ? found->second : Case{other_value(*find_key(key))};
    ASSERT_NE(example.value, "") << "give it a value in kCases";
    Document document = example.beside;
    document["train_micro_batch_size_per_gpu"] = "2";
    const std::string before = outcome(document);
    EXPECT_FALSE(before.starts_with("refused")) << before;
    document[key] = example.value;
    EXPECT_NE(outcome(document), before) << section(document, "");
  }
}

}  // namespace
}  // namespace strata::train
