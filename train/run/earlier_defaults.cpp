#include "train/run/earlier_defaults.h"

#include "train/config/option_fields.h"

namespace strata::train {
namespace {

/// True for options that change what is computed; an output folder does not.
bool is_term(const ResolvedField& field) {
  return field.origin == Origin::stored_model && field.name != "output";
}

}  // namespace

std::string keep_earlier_defaults(const ResolvedConfig& config, const std::string& fact,
                                  const TrainerState& saved, TrainOptions& options) {
  if (fact == kStoredModelDefaults || saved.data_digest == kUnknownData) return "";
  TrainOptions earlier;
  const std::vector<OptionField> from = option_fields(earlier), to = option_fields(options);
  std::string kept, unused;
  for (const ResolvedField& field : config.fields) {
    if (!is_term(field)) continue;
    const std::string value =
        field.name == "dtype" ? saved.dtype : text_of(*find_field(from, field.name));
    (void)assign(*find_field(to, field.name), {value}, unused);
    if (field.name == "epochs") {
      options.steps = earlier.steps;
      kept += (kept.empty() ? "" : ", ") + std::string("steps ") + std::to_string(options.steps);
    } else {
      kept += (kept.empty() ? "" : ", ") + field.name + " " + value;
    }
  }
  if (kept.empty()) return "";
  if (config.origin_of("communication_dtype") == Origin::automatic)
    options.communication_dtype = options.dtype;
  return "the checkpoint is of a run with other defaults, which are kept: " + kept;
}

}  // namespace strata::train
