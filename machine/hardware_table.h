// The machines that are known by name: the files of configs/hardware, which travel inside the
// library.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"

namespace strata::machine {

/// Names of the files without ".json", sorted.
std::vector<std::string> hardware_names();

/// Empty when there is none of that name.
std::optional<Machine> find_hardware(std::string_view name);

/// The machine whose device a driver calls that, of several the one with `devices` of them on its
/// one host, else the one with the fewest; empty when none has it: nothing is guessed.
std::optional<Machine> find_hardware_of_device(std::string_view driver_name, int devices = 1);

}  // namespace strata::machine
