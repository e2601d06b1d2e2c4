// Choices of algorithms that a device's libraries leave open, made before the first step and the
// same on all ranks.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "kernels/device/device.h"
#include "train/engine/build_programs.h"

namespace strata::train {

/// Collective over the ranks of `host`. Rank 0 chooses for every call of the Programs that `known`
/// (the text of `file`; empty: none) does not settle, and all ranks take its choices; a rank on
/// another kind of device adds its own. Before arenas are allocated. Throws DataError naming
/// `file`.
void agree_on_choices(kernels::Device& device, comm::Communicator& host,
                      const compile::StepPrograms& programs, const std::string& known,
                      const std::string& file, kernels::ChooseBy by);

}  // namespace strata::train
