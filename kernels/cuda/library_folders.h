// The search for NVIDIA's libraries (cuBLASLt, cuDNN, NCCL) on a machine.
#pragma once

#include <string>
#include <vector>

#include "core/dynamic_library.h"

namespace strata::cuda {

/// The environment variables that the search reads; empty where one is not set.
struct LibraryEnvironment {
  std::string cuda_path;    ///< STRATA_CUDA_PATH: folders, separated by colons
  std::string path;         ///< PATH, for the first python3
  std::string virtual_env;  ///< VIRTUAL_ENV
  std::string home;         ///< HOME
  std::string root;         ///< prefix of the usual absolute folders, for tests only
};

LibraryEnvironment library_environment();

/// Makes the search for one of `names`, in this order: the folders of STRATA_CUDA_PATH with their
/// lib and lib64; the loader; the usual folders of the toolkit and the distribution; nvidia/*/lib
/// of PyPI's wheels, of the python3 on PATH, the virtual environment, the user and the system. The
/// folders after the loader exist. No program is run.
LibrarySearch cuda_library_search(std::vector<std::string> names,
                                  const LibraryEnvironment& environment, const std::string& advice);

}  // namespace strata::cuda
