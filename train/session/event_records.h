// Records of TensorBoard's event files: TFRecord framing around Event messages in the wire format
// of Protobuf, whose nine fields are written by hand (docs/formats/logs.md has their numbers).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "train/session/run_scalars.h"

namespace strata::train {

/// The first record of a file. `wall_time_s`: seconds since 1970.
std::string version_record(double wall_time_s);

/// Makes readers drop what earlier files of the folder say about `step` and later ones.
std::string restart_record(double wall_time_s, std::int64_t step);

std::string scalars_record(double wall_time_s, std::int64_t step, std::span<const Scalar> scalars);

/// `message` as one record of a TFRecord file.
std::string framed(std::string_view message);

}  // namespace strata::train
