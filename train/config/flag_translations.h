// Translates flags of other programs, with their values, into options.
#pragma once

#include <string>
#include <vector>

#include "train/config/command_line.h"

namespace strata::train {

/// Sets an option from a flag. Values with another meaning in other programs are translated: "auto"
/// as a type sets nothing, a warm-up below one step is a part of all steps, "epoch" as an interval
/// of saving sets its strategy. Throws InvalidArgument if another flag has set another value.
void set_option(const std::string& option, const std::vector<std::string>& words,
                const std::string& flag, ParsedCommandLine& parsed);

/// Handles --fsdp: "full_shard auto_wrap", as one word or several.
void take_fsdp(const std::vector<std::string>& words, ParsedCommandLine& parsed);

/// Handles --initial-loss-scale: 65536 sets the power 16.
void take_initial_loss_scale(const std::string& word, ParsedCommandLine& parsed);

/// Handles --lr_scheduler_kwargs, a JSON object. Throws InvalidArgument naming the key.
void take_scheduler_arguments(const std::string& json, ParsedCommandLine& parsed);

}  // namespace strata::train
