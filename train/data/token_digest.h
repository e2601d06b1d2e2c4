// Whether data are those that a run was saved with.
#pragma once

#include <string>

#include "train/data/token_source.h"

namespace strata::train {

/// 32 hexadecimal digits over size, vocabulary and tokens: all of them up to 16 Mi, else 4,096
/// stretches of 4,096 at equal distances and the last one.
std::string digest_tokens(const TokenSource& source);

}  // namespace strata::train
