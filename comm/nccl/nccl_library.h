// NCCL, opened at run time: a table of the functions that collectives use.
#pragma once

#include <nccl.h>

#include <string>

#include "core/dynamic_library.h"
#include "kernels/cuda/library_folders.h"

namespace strata::comm {

/// Functions of nccl.h under their names without prefix.
struct NcclFunctions {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) get_error_string = nullptr;
  decltype(&::ncclGetLastError) get_last_error = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) comm_init_rank = nullptr;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&::ncclCommFinalize) comm_finalize = nullptr;
  decltype(&::ncclCommDestroy) comm_destroy = nullptr;
  decltype(&::ncclCommAbort) comm_abort = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclReduce) reduce = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
};

/// The open library.
class NcclLibrary {
 public:
  /// Throws HostError when the library, or a function in it, is missing.
  explicit NcclLibrary(const cuda::LibraryEnvironment& environment);

  [[nodiscard]] const NcclFunctions& functions() const { return functions_; }
  [[nodiscard]] const std::string& path() const { return library_.path(); }

 private:
  DynamicLibrary library_;
  NcclFunctions functions_;
};

/// Returns a version as text: "2.28.9".
std::string nccl_version_text(int version);

}  // namespace strata::comm
