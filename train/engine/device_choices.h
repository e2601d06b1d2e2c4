// Chooses between algorithms of a device's libraries before the first step, the same on all ranks.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "core/beat.h"
#include "kernels/device/device.h"
#include "train/engine/build_programs.h"

namespace strata::train {

/// Collective over the ranks of `host`; called before arenas are allocated. Rank 0 chooses for
/// every call of the Programs that `known` does not settle (the text of `file`; may be empty), and
/// all ranks take its choices; a rank on another kind of device adds its own. Beats after each
/// call. Throws DataError naming `file`.
void agree_on_choices(kernels::Device& device, comm::Communicator& host,
                      const compile::StepPrograms& programs, const std::string& known,
                      const std::string& file, kernels::ChooseBy by, const Beat& beat = {});

}  // namespace strata::train
