// Makes nodes that move values between tiers without changing them: copies between host memory and
// the device, transfers between pinned memory and the disk.
#pragma once

#include <string>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// Makes a node that copies `from` to `to`, values of one type: one is pageable or pinned and one
/// on the device, or one pinned and one on the disk. The tiers decide operation and queue.
Node transfer_node(const Graph& graph, ValueId from, ValueId to, TransferPurpose purpose, int block,
                   Pass pass, std::string label);

/// True if the operation is a transfer between memory and the disk, which executors hand to
/// runtime/program/disk.h instead of a kernel.
bool is_disk_transfer(const kernels::Operation& operation);

}  // namespace strata::runtime
