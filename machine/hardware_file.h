// Machines as files: configs/hardware, and what `doctor --write-hardware` writes
// (docs/formats/hardware.md).
#pragma once

#include <string>
#include <string_view>

#include "machine/machine.h"

namespace strata::machine {

/// Returns all known fields as pretty-printed JSON.
std::string to_json(const Machine& machine);

/// Inverse of to_json. Strict: an unknown key, a missing required one, or a value of a wrong type
/// or out of range throws ConfigError that names `file`, line, JSON path, what was found and what
/// is expected.
Machine read_hardware(std::string_view text, const std::string& file);

/// Loads a machine by name, or from a file. Throws ConfigError that suggests a name and lists all.
Machine load_hardware(const std::string& name_or_file);

}  // namespace strata::machine
