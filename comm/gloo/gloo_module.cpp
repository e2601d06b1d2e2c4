#include "comm/gloo/gloo_module.h"

#include "core/own_files.h"

namespace strata::comm {

std::unique_ptr<HostLink> make_gloo_link(const GlooPlace& place) {
  const auto entry = reinterpret_cast<GlooModuleEntry>(
      module_entry({.file = "libstrata_gloo.so",
                    .entry = kGlooModuleEntry,
                    .purpose = "communication between hosts",
                    .if_missing = "build Strata with libgloo-dev and libssl-dev installed, or use "
                                  "--comm mpi under mpirun",
                    .if_refused = "is Gloo installed (Debian: libgloo0)?"}));
  return std::unique_ptr<HostLink>(entry(place));
}

}  // namespace strata::comm
