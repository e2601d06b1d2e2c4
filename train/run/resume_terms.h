// What a checkpoint asks of the settings of the run that goes on from it.
#pragma once

#include <cstdint>
#include <string>

#include "train/checkpoint/trainer_state.h"
#include "train/config/options.h"
#include "train/models/model_config.h"

namespace strata::train {

/// As the command line would say the value of a field (option_fields.h).
std::string option_text(const TrainOptions& options, std::string_view name);

/// The manifest's fact that says how many leaves sums over ranks have (leaves() of options.h).
inline constexpr const char* kLeavesFact = "virtual_ranks";

/// What going on from a checkpoint whose sums had `saved` leaves (0: unknown) means for bits; ""
/// when they are the same.
std::string note_on_leaves(std::int64_t saved, int world, const TrainOptions& options);

/// Facts of the run that wants to go on, besides its options.
struct ResumingRun {
  int world = 1;
  std::string data_digest;
  std::int64_t data_tokens = 0;
  std::int64_t samples = 0;  ///< of one pass over the data: epochs are counted in them
  bool may_be_done = false;  ///< as many steps as the run has to do are no error
};

/// ConfigError when `now` has other tensors than the model of the checkpoint `where`: asked before
/// anything that depends on the model (tokens, tensors) is compared.
void require_same_model(const ModelConfig& saved, const std::string& where, const ModelConfig& now);

/// Refuses (ConfigError, with what to change) what would not be the same run: another optimizer,
/// and, unless options.checkpoint.changed_data, other samples. `where`: the checkpoint. The saved
/// global batch is kept: by another accumulation; returns a note then, else "".
std::string take_terms(const TrainerState& saved, const std::string& where, const ResumingRun& run,
                       TrainOptions& options);

}  // namespace strata::train
