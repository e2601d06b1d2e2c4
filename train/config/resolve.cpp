#include "train/config/resolve.h"

#include <algorithm>

#include "core/error.h"
#include "train/config/resolver.h"

namespace strata::train {

ResolvedConfig resolve(const ParsedCommandLine& command_line, int world, const ModelConfig& model,
                       const StoredModel& stored) {
  DeepSpeedSettings file;
  if (!command_line.config.empty()) {
    file = read_deepspeed_json(command_line.config, command_line.strict);
  }
  return resolve(command_line, file, world, model, stored);
}

ResolvedConfig resolve(const ParsedCommandLine& command_line, const DeepSpeedSettings& file,
                       int world, const ModelConfig& model, const StoredModel& stored) {
  Resolver resolver(command_line, file, world, model);
  resolver.take_given_values();
  resolver.take_length();
  resolver.take_stored_model(stored);
  resolver.take_optimizer();
  resolver.take_precision();
  resolver.take_batch();
  resolver.take_zero();
  resolver.take_scheduler();
  resolver.take_recomputation();
  resolver.take_offload();
  resolver.check_unread();
  resolver.check();
  return resolver.finish();
}

Origin ResolvedConfig::origin_of(std::string_view name) const {
  for (const ResolvedField& field : fields) {
    if (field.name == name) return field.origin;
  }
  throw InternalError("no option is called " + std::string(name));
}

std::string describe(const ResolvedConfig& resolved) {
  std::size_t name_width = 0, value_width = 0;
  for (const ResolvedField& field : resolved.fields) {
    name_width = std::max(name_width, field.name.size());
    value_width = std::max(value_width, std::min<std::size_t>(field.value.size(), 24));
  }
  std::string text;
  for (const ResolvedField& field : resolved.fields) {
    std::string line = field.name;
    line.resize(name_width + 2, ' ');
    line += field.value;
    line.resize(std::max(line.size(), name_width + 2 + value_width) + 2, ' ');
    line += name_of(field.origin);
    if (!field.where.empty()) line += " (" + field.where + ")";
    text += line + '\n';
  }
  return text;
}

}  // namespace strata::train
