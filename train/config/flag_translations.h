// Flags of other programs that say in their own words what options here say in theirs.
#pragma once

#include <string>
#include <vector>

#include "train/config/command_line.h"

namespace strata::train {

/// What a flag sets. Words that mean something else elsewhere are turned into what they mean there:
/// "auto" as a type is not given, a warm-up below one step is a part of all, "epoch" as an interval
/// of saving is its strategy. Throws InvalidArgument when another flag has said otherwise.
void set_option(const std::string& option, const std::vector<std::string>& words,
                const std::string& flag, ParsedCommandLine& parsed);

/// --fsdp: "full_shard auto_wrap", as one word or several.
void take_fsdp(const std::vector<std::string>& words, ParsedCommandLine& parsed);

/// --initial-loss-scale: 65536 is the power 16.
void take_initial_loss_scale(const std::string& word, ParsedCommandLine& parsed);

/// --lr_scheduler_kwargs: a JSON object. Throws InvalidArgument naming the key.
void take_scheduler_arguments(const std::string& json, ParsedCommandLine& parsed);

}  // namespace strata::train
