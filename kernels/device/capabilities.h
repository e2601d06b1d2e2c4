// The few facts of a device on which workspaces depend.
#pragma once

#include <cstdint>

namespace strata::kernels {

/// What planning must know of a device; read from a file or from the machine, never asked during a
/// step.
struct DeviceCapabilities {
  enum class Backend : std::uint8_t { cpu, cuda } backend = Backend::cpu;
  int workers = 1;       ///< threads of the CPU pool (scratch per worker); never changes bits
  int architecture = 0;  ///< of CUDA: 90 for sm_90; 0 when unknown: scratch then fits all
  bool cudnn = false;    ///< attention may run in cuDNN: its scratch is planned
  bool operator==(const DeviceCapabilities&) const = default;
};

}  // namespace strata::kernels
