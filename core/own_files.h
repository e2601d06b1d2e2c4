// What lies beside the running program: its folder, and modules of Strata, shared libraries with
// dependencies of their own that a program opens when a run needs them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace strata {

/// Returns the folder of the running program, symbolic links resolved. Throws HostError without
/// /proc.
std::string own_directory();

/// Returns a hash of the running program's file, all of which it reads. Throws IoError.
std::uint64_t hash_of_program();

/// Returns hashes of what is installed beside the running program, by name: of `programs`, as far
/// as they are there, and of all modules of Strata, there and in ../lib. Reads all of these files.
/// Copies of one build are equal. Throws HostError without /proc, or if it is not known whether one
/// is there, and IoError.
std::map<std::string, std::uint64_t> hashes_of_installed(const std::vector<std::string>& programs);

/// A module of Strata that this process has opened.
struct OpenedModule {
  std::string file;        ///< its name alone: "libstrata_mpi.so"
  std::string folder;      ///< of the file
  std::uint64_t hash = 0;  ///< of all its bytes
};
/// Returns the opened modules in the order of their names, each file of which it reads. Copies of
/// one build have equal hashes, wherever they lie. Throws IoError.
std::vector<OpenedModule> opened_modules();

struct ModuleSearch {
  std::string file;        ///< "libstrata_mpi.so"
  std::string entry;       ///< its only function
  std::string purpose;     ///< begins the message if it is missing: "communication over MPI"
  std::string if_missing;  ///< what to do then
  std::string if_refused;  ///< what may be missing if it cannot be loaded
};

/// Opens a module in ../lib of the program's folder or in that folder, and returns its entry. It
/// stays loaded until the process ends. Throws HostError that says where it was looked for, or why
/// it cannot be used.
void* module_entry(const ModuleSearch& search);

}  // namespace strata
