#include "core/own_files.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {

std::unique_ptr<ControlModule> open_control_module() {
  const auto entry = reinterpret_cast<ControlModuleEntry>(module_entry(
      {.file = kControlModuleFile,
       .entry = kControlModuleEntry,
       .purpose = "a run over several hosts",
       .if_missing =
           "build Strata with libgrpc++-dev and protobuf-compiler-grpc installed, or start "
           "the ranks with mpirun or srun",
       .if_refused = "are gRPC and OpenSSL installed (Debian: libgrpc++1.51, libssl3)?"}));
  return std::unique_ptr<ControlModule>(entry());
}

}  // namespace strata::launcher
