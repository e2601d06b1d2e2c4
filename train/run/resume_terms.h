// Checks the settings of a run against the checkpoint that it goes on from.
#pragma once

#include <cstdint>
#include <string>

#include "train/checkpoint/trainer_state.h"
#include "train/config/options.h"
#include "train/models/model_config.h"

namespace strata::train {

/// The value of a field (option_fields.h) as the command line would give it.
std::string option_text(const TrainOptions& options, std::string_view name);

/// The manifest's fact with the number of leaves of sums over ranks (leaves() of options.h).
inline constexpr const char* kLeavesFact = "virtual_ranks";

/// Says what a checkpoint with `saved` leaves (0: unknown), of micro-batches of `micro_batch`
/// samples (0: unknown), means for the bits; "": they are equal.
std::string note_on_leaves(std::int64_t saved, std::int64_t micro_batch, int world,
                           const TrainOptions& options);

/// The manifest's fact with the samples that a rank takes at a time.
inline constexpr const char* kMicroBatchFact = "micro_batch";

/// Why runs differ that are alike but for the micro-batch.
inline constexpr const char* kOtherMicroBatch =
    "Another micro-batch adds gradients in another order, so that losses differ in their last "
    "digits from those of a run that was not interrupted";

/// Says what a checkpoint of a run with another micro-batch means for the bits; "": they are equal,
/// or one is unknown (0).
std::string note_on_micro_batch(std::int64_t saved, const TrainOptions& options);

/// Sizes of the batch that a resumed run was given; the others are defaults, or follow from these.
struct SaidBatch {
  struct Number {
    std::string where;  ///< the flag, or "ds.json:2: train_batch_size"; "": nothing says it
    bool in_file = false;
    [[nodiscard]] bool is_said() const { return !where.empty(); }
  };
  Number global, accumulation;
  bool micro = false;
};

/// Note on the batch with which the run goes on; its text is "" if that is as the options say.
struct BatchNote {
  std::string text;
  bool is_warning = false;  ///< it is not what the user has said
};

/// Facts about the run that goes on, besides its options.
struct ResumingRun {
  int world = 1;
  std::string data_digest;
  std::int64_t data_tokens = 0;
  std::int64_t samples = 0;  ///< samples in one pass over the data, to count epochs
  bool may_be_done = false;  ///< no error if all steps of the run are done
  SaidBatch said;
};

/// Throws ConfigError if `now` has other tensors than the model of the checkpoint `where`. Called
/// before anything that depends on the model (tokens, tensors) is compared.
void require_same_model(const ModelConfig& saved, const std::string& where, const ModelConfig& now);

/// Throws ConfigError, with what to change, for what would not be the same run: another optimizer
/// and, unless options.checkpoint.changed_data, other samples. `where`: the checkpoint. Keeps the
/// saved global batch by changing the accumulation, and then returns a note.
BatchNote take_terms(const TrainerState& saved, const std::string& where, const ResumingRun& run,
                     TrainOptions& options);

}  // namespace strata::train
