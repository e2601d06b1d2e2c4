#include "train/models/hf_config.h"

#include <vector>

#include "core/json.h"
#include "core/nearest_name.h"
#include "train/models/hf_reader.h"
#include "train/models/presets.h"

namespace strata::train {
namespace {

const ModelFamily& family_of(const HfReader& reader, std::span<const ModelFamily> own) {
  std::vector<std::string_view> known;
  for (const std::span<const ModelFamily> rows : {built_in_families(), own})
    for (const ModelFamily& row : rows)
      if (row.read != nullptr) known.push_back(row.model_type);
  if (!reader.find("model_type")) {
    std::string message = "missing, expected " + std::string(known[0]);
    for (std::size_t i = 1; i < known.size(); ++i)
      message += (i + 1 < known.size() ? ", " : " or ") + std::string(known[i]);
    reader.fail("model_type", message);
  }
  const std::string type = reader.text("model_type", "");
  const ModelFamily* family = find_family(type, own);
  if (family != nullptr && family->read != nullptr) return *family;
  std::string message = "unknown model type '" + type + "'" + suggestion(type, known) + "; known:";
  for (const std::string_view name : known) message += ' ' + std::string(name);
  reader.fail("model_type", message);
}

ModelConfig model_config_from(const JsonValue& document, std::span<const ModelFamily> own) {
  const HfReader reader(document);
  ModelConfig config;
  config.family = &family_of(reader, own);
  config.initializer_range = reader.number("initializer_range", 0.02, 0, 100);
  if (reader.find("quantization_config")) {
    reader.fail("quantization_config", "quantized weights are not trained; use the original model");
  }
  config.family->read(reader, config);
  return config;
}

JsonOptions strict_options() {
  JsonOptions options;
  options.fault = JsonFault::configuration;
  return options;
}

}  // namespace

ModelConfig parse_model_config(std::string_view text, const std::string& file,
                               std::span<const ModelFamily> own) {
  return model_config_from(parse_json(text, file, strict_options()), own);
}

ModelConfig read_model_config(const std::string& model, std::span<const ModelFamily> own) {
  return model_config_from(read_json_file(find_model_config(model), strict_options()), own);
}

}  // namespace strata::train
