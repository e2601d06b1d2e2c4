// Runs Programs. Loading binds operands to addresses and kernels once; running allocates nothing
// and decides nothing.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "kernels/stream.h"
#include "runtime/arena.h"
#include "runtime/observer.h"
#include "runtime/program.h"

namespace strata::runtime {

/// Programs started one after another run in that order; a later one may begin on a queue before
/// the earlier one has ended on another, as far as its border waits allow. One caller thread.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Binds a Program; returns its handle. Throws InternalError when a kernel is missing.
  virtual int load(Program program) = 0;
  [[nodiscard]] virtual const Program& program(int handle) const = 0;
  /// Enqueues. Does not wait.
  virtual void start(int handle) = 0;
  /// Until everything started has completed. Throws the first error, with its instruction; after an
  /// error the executor is poisoned: nothing new starts, the communicator is aborted.
  virtual void wait() = 0;
};

/// What an executor borrows; all must outlive it.
struct ExecutorParts {
  Arena* device_arena = nullptr;
  comm::Communicator* communicator = nullptr;  ///< may be null without collectives
  std::vector<Observer*> observers;
};

/// One thread per queue; the compute queue's thread uses `stream` and its pool, only the
/// communication queue's thread calls the communicator. Waits sleep.
std::unique_ptr<Executor> make_cpu_executor(ExecutorParts parts,
                                            const kernels::KernelTable& kernels,
                                            kernels::Stream& compute_stream,
                                            kernels::Stream& communication_stream);

}  // namespace strata::runtime
