// Digests data, to recognize the data that a run was saved with.
#pragma once

#include <string>

#include "train/data/token_source.h"

namespace strata::train {

/// Returns 32 hexadecimal digits over size, vocabulary and tokens: all tokens up to 16 Mi, else
/// 4,096 stretches of 4,096 at equal distances, and the last stretch.
std::string digest_tokens(const TokenSource& source);

}  // namespace strata::train
