// The chain problem: what each block of a model does with its activations between forward and
// backward pass, under a budget of device memory. Pure data: bytes, nanoseconds, bytes per second.
//
// A *choice* names one option per block. Notation for block i of L with option o(i):
//   keep = kept_bytes, out = host_bytes + disk_bytes, work = working_bytes, r = recompute_ns;
//   f, b = forward_ns, backward_ns; F, W = base plus working bytes of forward and backward;
//   m(i) = kept bytes of blocks before i; B = budget_bytes.
//
// Forward pass, i = 0 .. L-1. The link copies offloaded bytes out in order; q is the backlog, the
// bytes that have not left the device yet.
//   F(i) + m(i) <= B, else the choice does not fit
//   if F(i) + m(i) + q > B: the pass waits until the excess has left; q is then B - F(i) - m(i)
//   q = max(0, q - drained(i))          bytes that leave during f(i)
//   q = q + out(i)                      F(i) includes what the block itself makes
// The turn: the backward pass begins when q has left and the last block's bytes are back.
// Backward pass, i = L-1 .. 0. While block i computes, the bytes of block i-1 come back:
//   W(i) + m(i) + keep(i) + out(i) + out(i-1) + work(i) <= B, else the choice does not fit
//   block i-1 waits max(0, back(i-1) - (b(i) + r(i))) ns
// Disk bytes pass through pinned host memory. Each block's are written while the next block's
// forward pass runs, whatever the backlog of the link; they come back as one stream:
//   block i+1 waits max(0, written(i) - f(i+1)) ns after its forward pass
//   back(i) = max(time of out(i) over the link, time of disk_bytes(i) from the disk)
//   host bytes of blocks <= i, disk bytes of blocks i and i-1: together <= host_budget_bytes
// This is an upper bound for a disk that is shared by several blocks' bytes: slack of one block is
// not lent to another.
//
// Extra time = sum of r(i) and of all waits. The waits for the link in the forward pass and at the
// turn are added up in bytes and rounded up to ns once, all others are rounded up each; drained
// bytes are rounded down. So neither a larger budget nor a faster engine makes a choice slower.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace strata::runtime {

/// One way in which a block may treat what it saves.
struct ChainOption {
  std::int64_t kept_bytes = 0;     ///< stay on the device until the block's backward pass ends
  std::int64_t host_bytes = 0;     ///< wait in pinned host memory
  std::int64_t disk_bytes = 0;     ///< wait on the disk
  std::int64_t recompute_ns = 0;   ///< added to the block's backward pass
  std::int64_t working_bytes = 0;  ///< added to the working set of the block's backward pass
  bool operator==(const ChainOption&) const = default;
  /// Bytes that cross the link, once in each direction.
  [[nodiscard]] std::int64_t link_bytes() const { return host_bytes + disk_bytes; }
};

struct ChainBlock {
  int class_index = 0;  ///< of Chain::classes: the block's options
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
  /// Held at this position whatever the choice: parameters, gradients made so far, the head.
  std::int64_t forward_base_bytes = 0;
  std::int64_t backward_base_bytes = 0;
  /// Working set of the position; the forward one includes all that the block makes.
  std::int64_t forward_working_bytes = 0;
  std::int64_t backward_working_bytes = 0;
  bool operator==(const ChainBlock&) const = default;
  [[nodiscard]] std::int64_t forward_bytes() const {
    return forward_base_bytes + forward_working_bytes;
  }
  [[nodiscard]] std::int64_t backward_bytes() const {
    return backward_base_bytes + backward_working_bytes;
  }
};

/// Copies in both directions at the same time, each at its rate. Rate 0: there is no such engine,
/// and options that use it are never chosen.
struct CopyEngine {
  std::int64_t out_bytes_per_s = 0;  ///< away from the device
  std::int64_t in_bytes_per_s = 0;
  bool operator==(const CopyEngine&) const = default;
  [[nodiscard]] bool exists() const { return out_bytes_per_s > 0 && in_bytes_per_s > 0; }
};

struct Chain {
  std::vector<std::vector<ChainOption>> classes;  ///< option lists
  std::vector<ChainBlock> blocks;                 ///< in the order of the forward pass
  std::int64_t budget_bytes = std::numeric_limits<std::int64_t>::max();
  CopyEngine link;  ///< between device and host memory
  CopyEngine disk;  ///< between host memory and the disk
  std::int64_t host_budget_bytes = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] int length() const { return static_cast<int>(blocks.size()); }
  [[nodiscard]] const std::vector<ChainOption>& options(int block) const {
    const auto& at = blocks[static_cast<std::size_t>(block)];
    return classes[static_cast<std::size_t>(at.class_index)];
  }
  /// True if the engines that the option needs exist.
  [[nodiscard]] bool is_possible(const ChainOption& option) const {
    return (option.link_bytes() == 0 || link.exists()) && (option.disk_bytes == 0 || disk.exists());
  }
};

/// The option of each block, an index of its class.
using ChainChoice = std::vector<int>;

/// Throws InvalidArgument naming block, class or engine for an empty chain or class, an index out
/// of range, a negative number, or numbers so large that sums of them would overflow.
void check_chain(const Chain& chain);

}  // namespace strata::runtime
