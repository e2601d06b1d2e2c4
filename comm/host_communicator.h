// A communicator whose collectives run on the calling thread, over operands in host memory.
#pragma once

#include <span>

#include "comm/communicator.h"

namespace strata::comm {

/// Gives each kind of collective to a function of its own, which returns when the rank's operands
/// are free and its result stands. Operands are of the kind's sizes (operand_bytes).
class HostCommunicator : public Communicator {
 protected:
  void run_kind(const Collective& collective, const std::byte* input, std::byte* output,
                std::span<std::byte> workspace) {
    switch (collective.kind) {
      case CollectiveKind::all_gather:
        return all_gather(collective, input, output);
      case CollectiveKind::reduce_scatter:
        return reduce_scatter(collective, input, reinterpret_cast<float*>(output), workspace);
      case CollectiveKind::all_reduce:
        return all_reduce(collective, output, workspace);
      case CollectiveKind::broadcast:
        return broadcast(collective, output);
      case CollectiveKind::all_to_all:
        return all_to_all(collective, input, output);
      case CollectiveKind::send:
        return send(collective, input);
      case CollectiveKind::receive:
        return receive(collective, output);
      case CollectiveKind::barrier:
        return meet(collective);
    }
  }

 private:
  virtual void all_gather(const Collective& collective, const std::byte* input,
                          std::byte* output) = 0;
  virtual void reduce_scatter(const Collective& collective, const std::byte* input, float* output,
                              std::span<std::byte> workspace) = 0;
  virtual void all_reduce(const Collective& collective, std::byte* data,
                          std::span<std::byte> workspace) = 0;
  virtual void broadcast(const Collective& collective, std::byte* data) = 0;
  virtual void all_to_all(const Collective& collective, const std::byte* input,
                          std::byte* output) = 0;
  virtual void send(const Collective& collective, const std::byte* input) = 0;
  virtual void receive(const Collective& collective, std::byte* output) = 0;
  virtual void meet(const Collective& collective) = 0;  ///< the barrier
};

}  // namespace strata::comm
