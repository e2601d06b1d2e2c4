// A stand-in for NCCL among the threads of one process, or processes that it forks, over host
// memory. Like NCCL in non-blocking mode, it accepts a group of calls and is then asked until the
// group is done. Senders wait for receivers.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/nccl/nccl_library.h"

namespace strata::comm {

/// Processes that are to meet are forked after the first call. They are of at most 8 ranks.
const NcclFunctions& fake_nccl();

/// Bytes that rank `from` of any communicator has sent to rank `to`, of this process and those
/// that are forked.
std::int64_t fake_nccl_sent_bytes(int from, int to);

/// Returns the rank whose communicators report a lost peer; -1: none.
std::atomic<int>& fake_nccl_failing_rank();

/// Number of communicators of this process that were neither destroyed nor aborted.
std::atomic<int>& fake_nccl_alive();

}  // namespace strata::comm
