// A check that all ranks mean the same run: settings, files, build.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "comm/communicator.h"

namespace strata::comm {

/// Something that has to be equal on all ranks: "learning_rate", "0.001".
struct Fact {
  std::string name;
  std::string value;
  std::string path = {};  ///< where it was read, which may differ; empty: that is no file
};

/// Collective over all ranks. If facts differ, every rank throws the same ConfigError: for each
/// fact that differs between the first rank that has facts and the first that is not like it, a
/// line with both values, both paths and both hosts. A rank without facts agrees with all. Costs
/// one small exchange when facts are equal. `host`: the name of this rank's host, for the message.
/// Facts must not contain NUL. Needs no arena of the caller.
void require_equal_facts(Communicator& communicator, std::string_view host,
                         std::span<const Fact> facts);

}  // namespace strata::comm
