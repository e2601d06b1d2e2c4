// A stand-in for NCCL among the threads of one process, over host memory. Like NCCL in non-blocking
// mode, it accepts a group of calls and is then asked until the group is done. Nothing is buffered:
// senders wait for receivers.
#pragma once

#include <atomic>

#include "comm/nccl/nccl_library.h"

namespace strata::comm {

const NcclFunctions& fake_nccl();

/// Returns the rank whose communicators report a lost peer; -1: none.
std::atomic<int>& fake_nccl_failing_rank();

/// Number of communicators that were neither destroyed nor aborted.
std::atomic<int>& fake_nccl_alive();

}  // namespace strata::comm
