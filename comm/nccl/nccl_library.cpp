#include "comm/nccl/nccl_library.h"

#include <fmt/core.h>

namespace strata::comm {
namespace {

constexpr const char* kAdvice =
    "install NCCL 2.18 or later (Debian: libnccl2; Python wheel: nvidia-nccl-cu13), or name its "
    "folder in STRATA_CUDA_PATH";

}  // namespace

NcclLibrary::NcclLibrary(const cuda::LibraryEnvironment& environment)
    : library_(
          DynamicLibrary::open(cuda::cuda_library_search({"libnccl.so.2"}, environment, kAdvice))) {
  SymbolReader reader(library_);
  reader.read("ncclGetVersion", functions_.get_version);
  reader.read("ncclGetErrorString", functions_.get_error_string);
  reader.read("ncclGetLastError", functions_.get_last_error);
  reader.read("ncclGetUniqueId", functions_.get_unique_id);
  reader.read("ncclCommInitRankConfig", functions_.comm_init_rank);
  reader.read("ncclCommGetAsyncError", functions_.comm_get_async_error);
  reader.read("ncclCommFinalize", functions_.comm_finalize);
  reader.read("ncclCommDestroy", functions_.comm_destroy);
  reader.read("ncclCommAbort", functions_.comm_abort);
  reader.read("ncclGroupStart", functions_.group_start);
  reader.read("ncclGroupEnd", functions_.group_end);
  reader.read("ncclSend", functions_.send);
  reader.read("ncclRecv", functions_.receive);
  reader.read("ncclAllGather", functions_.all_gather);
  reader.read("ncclAllReduce", functions_.all_reduce);
  reader.read("ncclReduce", functions_.reduce);
  reader.read("ncclBroadcast", functions_.broadcast);
  reader.require_all(kAdvice);
}

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace strata::comm
