// The facts of a device on which the sizes of workspaces depend.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// The facts that planning uses. They are read from a file or from the machine before the first
/// step, never during one.
struct DeviceCapabilities {
  enum class Backend : std::uint8_t { cpu, cuda } backend = Backend::cpu;
  int workers = 1;       ///< threads of the CPU pool, each with scratch; bits do not depend on it
  int architecture = 0;  ///< CUDA's: 90 for sm_90; 0: unknown, scratch is then enough for any
  bool cudnn = false;    ///< attention may run in cuDNN, so the plan includes cuDNN's scratch
  bool operator==(const DeviceCapabilities&) const = default;
};

}  // namespace strata::kernels
