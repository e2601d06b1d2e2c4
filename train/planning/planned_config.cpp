#include "train/planning/planned_config.h"

#include "core/byte_size.h"
#include "core/json.h"
#include "core/json_writer.h"

namespace strata::train {
namespace {

const char* word(plan::Home target) {
  return target == plan::Home::host ? "cpu" : target == plan::Home::disk ? "nvme" : "none";
}

void write_home(JsonWriter& json, const char* key, plan::Home target, const OffloadOptions& offload,
                double ratio) {
  if (target == plan::Home::device) return;
  json.key(key).begin_object().member("device", word(target));
  if (target == plan::Home::disk && !offload.nvme_paths.empty())
    json.member("nvme_path", offload.nvme_paths.front());
  if (ratio < 1) json.member("ratio", ratio);
  json.end_object();
}

void write_strata(JsonWriter& json, const TrainOptions& options) {
  const OffloadOptions& offload = options.offload;
  json.key("strata").begin_object();
  json.member("sequence_length", options.sequence_length);
  if (options.activation_checkpointing)
    json.key("activation_checkpointing")
        .begin_object()
        .member("segments", options.checkpoint_segments)
        .member("ratio", options.checkpoint_ratio)
        .end_object();
  if (!options.actions.empty())
    json.key("actions").value(parse_json(runtime::to_json(options.actions), "actions", {}));
  if (options.recompute_norms) json.member("recompute_norms", true);
  if (offload.layer_major) json.member("layer_major", true);
  if (offload.activations != plan::Home::device)
    json.member("offload_activations", word(offload.activations));
  if (offload.nvme_paths.size() > 1) {
    json.key("nvme_paths").begin_row();
    for (const std::string& path : offload.nvme_paths) json.value(path);
    json.end_array();
  }
  if (offload.device_memory_bytes != kUnlimitedMemory)
    json.member("device_memory", byte_size_text(offload.device_memory_bytes));
  if (offload.host_memory_bytes != kUnlimitedMemory)
    json.member("host_memory", byte_size_text(offload.host_memory_bytes));
  json.end_object();
}

}  // namespace

std::string planned_config(const TrainOptions& options) {
  JsonWriter json;
  json.begin_object();
  json.member("train_batch_size", options.global_batch);
  json.member("train_micro_batch_size_per_gpu", options.micro_batch);
  json.member("gradient_accumulation_steps", options.accumulation);
  if (options.dtype != DType::f32)
    json.key(options.dtype == DType::bf16 ? "bf16" : "fp16")
        .begin_object()
        .member("enabled", true)
        .end_object();
  json.key("zero_optimization").begin_object().member("stage", options.zero.stage);
  const OffloadOptions& offload = options.offload;
  write_home(json, "offload_optimizer", offload.optimizer, offload, offload.optimizer_ratio);
  write_home(json, "offload_param", offload.parameters, offload, 1);
  json.end_object();
  write_strata(json, options);
  json.end_object();
  return json.finish() + "\n";
}

}  // namespace strata::train
