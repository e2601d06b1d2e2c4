// Where NVIDIA's libraries (cuBLASLt, cuDNN, NCCL) lie on a machine.
#pragma once

#include <string>
#include <vector>

#include "core/dynamic_library.h"

namespace strata::cuda {

/// What the search reads of the process's environment; empty where a variable is not set.
struct LibraryEnvironment {
  std::string cuda_path;    ///< STRATA_CUDA_PATH: folders, separated by colons
  std::string path;         ///< PATH, for the first python3
  std::string virtual_env;  ///< VIRTUAL_ENV
  std::string home;         ///< HOME
  std::string root;         ///< put before the usual absolute folders; tests only
};

LibraryEnvironment library_environment();

/// Search for one of `names`: the folders of STRATA_CUDA_PATH with their lib and lib64; the loader;
/// the toolkit's and the distribution's usual folders; nvidia/*/lib, as the wheels of PyPI have it,
/// of the python3 on PATH, of the virtual environment, of the user and of the system. No program is
/// run. Of the folders after the loader only those that exist.
LibrarySearch cuda_library_search(std::vector<std::string> names,
                                  const LibraryEnvironment& environment, const std::string& advice);

}  // namespace strata::cuda
