// Digests data, to recognize the data that a run was saved with.
#pragma once

#include <string>

#include "core/beat.h"
#include "train/data/token_source.h"

namespace strata::train {

/// Returns 32 hexadecimal digits over size, vocabulary and tokens: all tokens up to 16 Mi, else
/// 4,096 stretches of 4,096 at equal distances, and the last stretch. Beats after each stretch.
std::string digest_tokens(const TokenSource& source, const Beat& beat = {});

}  // namespace strata::train
