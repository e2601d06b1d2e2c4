// Reads the arguments of train before hosts wait for one another.
#pragma once

#include <string>
#include <vector>

#include "core/own_files.h"

namespace strata::launcher {

/// Returns the path of the train that lies beside this mlaunch, in `directory`, if the command
/// starts that one, by whatever path or link; "": it starts another program, of whose arguments
/// nothing is known.
std::string own_train(const std::vector<std::string>& command,
                      const std::string& directory = own_directory());

/// Throws InvalidArgument with the words of `train`, the path of one, if it refuses the arguments
/// of the command by themselves: it is asked for its help besides, so that it reads them, but no
/// file. What else goes wrong is no refusal.
void check_train_arguments(const std::string& train, const std::vector<std::string>& command);

}  // namespace strata::launcher
