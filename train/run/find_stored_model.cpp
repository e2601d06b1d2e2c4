#include "train/run/find_stored_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/json.h"
#include "train/config/option_fields.h"
#include "train/files/model_files.h"
#include "train/run/model_directory.h"

namespace strata::train {
namespace {

/// The type of "bfloat16" or "torch.bfloat16"; nullopt if training cannot run in it.
std::optional<DType> type_named(std::string name) {
  constexpr std::string_view kModule = "torch.";
  if (name.starts_with(kModule)) name.erase(0, kModule.size());
  TrainOptions options;
  std::string note;
  if (!assign(options, "dtype", {name}, note).empty()) return std::nullopt;
  return options.dtype;
}

std::optional<DType> type_in_config(const std::string& directory) {
  JsonOptions options;
  options.fault = JsonFault::configuration;
  const JsonValue config = parse_json(config_text(directory), directory, options);
  for (const char* key : {"dtype", "torch_dtype"})
    if (const std::optional<JsonValue> type = config.find(key); type && type->is(JsonKind::string))
      return type_named(type->as_string());
  return std::nullopt;
}

std::optional<DType> type_of_weights(const std::string& directory) {
  const ModelFiles files(directory);
  const auto largest = std::ranges::max_element(files.tensors(), {}, &StoredTensor::elements);
  if (largest == files.tensors().end() || !largest->dtype) return std::nullopt;
  const DType type = *largest->dtype;
  const bool trains = type == DType::f32 || type == DType::bf16 || type == DType::f16;
  return trains ? std::optional(type) : std::nullopt;
}

}  // namespace

StoredModel find_stored_model(const std::string& requested, const std::string& directory) {
  if (!ModelFiles::has_weights(directory)) return {};
  StoredModel stored{.has_weights = true, .name = "", .dtype = type_in_config(directory)};
  std::filesystem::path path = std::filesystem::path(requested).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  stored.name = path.filename().string();
  if (stored.name == "." || stored.name == "..")
    stored.name = std::filesystem::absolute(path).lexically_normal().parent_path().filename();
  if (!stored.dtype) stored.dtype = type_of_weights(directory);
  return stored;
}

}  // namespace strata::train
