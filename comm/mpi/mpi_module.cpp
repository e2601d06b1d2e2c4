#include "comm/mpi/mpi_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace strata::comm {
namespace {

std::filesystem::path find_module() {
  namespace fs = std::filesystem;
  const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path();
  std::string looked;
  for (const fs::path& folder : {programs / ".." / "lib", programs}) {
    const fs::path candidate = (folder / "libstrata_mpi.so").lexically_normal();
    if (fs::exists(candidate)) return candidate;
    looked += (looked.empty() ? "" : ", ") + candidate.string();
  }
  throw HostError("communication over MPI needs libstrata_mpi.so, which is not at " + looked +
                  "; build Strata with libopenmpi-dev installed, or start the ranks with mlaunch");
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(int rank, int world) {
  const std::filesystem::path path = find_module();
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw HostError("cannot load " + path.string() + ": " + ::dlerror() +
                    "; is Open MPI installed (Debian: openmpi-bin)?");
  const auto entry = reinterpret_cast<MpiModuleEntry>(::dlsym(module, kMpiModuleEntry));
  if (entry == nullptr)
    throw HostError(path.string() + " is no module of this Strata: " + ::dlerror());
  return std::unique_ptr<Communicator>(entry(rank, world));
}

}  // namespace strata::comm
