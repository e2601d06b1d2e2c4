#include "launcher/wire/own_build.h"

#include <fmt/core.h>

#include "core/own_files.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {
std::string own_build(std::string_view version) {
  std::string build = fmt::format("Strata {}\nmlaunch {:016x}", version, hash_of_program());
  for (const OpenedModule& module : opened_modules())
    if (module.file == kControlModuleFile)
      build += fmt::format("\n{} {:016x}", module.file, module.hash);
  return build;
}

}  // namespace strata::launcher
