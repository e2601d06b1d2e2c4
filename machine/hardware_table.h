// The machines known by name: the files of configs/hardware, which the library contains.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"

namespace strata::machine {

/// Names of the files without ".json", sorted.
std::vector<std::string> hardware_names();

/// Returns nothing if there is no machine of that name, whose letters may be small or large.
std::optional<Machine> find_hardware(std::string_view name);

/// Finds a machine whose device the driver calls `driver_name`: the one host with `devices` such
/// devices, else the machine with the fewest. Returns nothing if no file names the device.
std::optional<Machine> find_hardware_of_device(std::string_view driver_name, int devices = 1);

}  // namespace strata::machine
