// Machines as files: configs/hardware and what `doctor --write-hardware` writes
// (docs/formats/hardware.md).
#pragma once

#include <string>
#include <string_view>

#include "machine/machine.h"

namespace strata::machine {

/// Pretty-printed JSON; every field that is known.
std::string to_json(const Machine& machine);

/// Inverse of to_json. Strict: throws ConfigError that names `file`, line and JSON path, what was
/// found and what is expected, for an unknown key, a missing one that every machine has, and a
/// value of another type or out of range.
Machine read_hardware(std::string_view text, const std::string& file);

/// A name of the table, or the path of a file. Throws ConfigError that lists the names.
Machine load_hardware(const std::string& name_or_file);

}  // namespace strata::machine
