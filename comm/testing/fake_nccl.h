// A stand-in for NCCL among the threads of one process, over memory of the host. Like NCCL in its
// non-blocking mode it takes a group of calls and is then asked again and again until the group is
// done; nothing is buffered, so that who sends waits for who receives.
#pragma once

#include <atomic>

#include "comm/nccl/nccl_library.h"

namespace strata::comm {

const NcclFunctions& fake_nccl();

/// The rank whose communicators report that a peer is lost; -1: none.
std::atomic<int>& fake_nccl_failing_rank();

/// Communicators that were neither destroyed nor aborted.
std::atomic<int>& fake_nccl_alive();

}  // namespace strata::comm
