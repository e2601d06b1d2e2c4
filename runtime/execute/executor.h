// Runs Programs. Loading binds operands to addresses and kernels once; running neither allocates
// nor decides anything.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicators.h"
#include "kernels/device/device.h"
#include "kernels/device/stream.h"
#include "runtime/execute/arena.h"
#include "runtime/execute/observer.h"
#include "runtime/program/disk.h"
#include "runtime/program/program.h"

namespace strata::runtime {

/// The number of one execution of a Program, from 0 in the order in which they were started.
using RunNumber = std::int64_t;

/// Programs run in the order in which they were started; a later one may begin on a queue before
/// the earlier one has ended on another, as far as its border waits allow. Called on one thread.
///
/// After an error the executor is poisoned: nothing new starts, the communicator is aborted, and
/// every call that waits throws the first error, with its instruction.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Binds a Program and returns its handle. Throws InternalError if a kernel is missing.
  virtual int load(Program program) = 0;
  [[nodiscard]] virtual const Program& program(int handle) const = 0;
  /// Enqueues a run; waits only while two are under way. `step` is for observers.
  virtual RunNumber start(int handle, std::int64_t step) = 0;
  /// Waits until `run` has read its staged inputs (runtime/passes/staging.h), so that the host may
  /// write those of the next run.
  virtual void wait_inputs_read(RunNumber run) = 0;
  /// Waits for `run` to end.
  virtual void wait(RunNumber run) = 0;
  /// Waits for all runs that were started.
  virtual void wait_all() = 0;
  /// Waits for all runs and discards all recordings: a communicator that took part in one cannot
  /// close before.
  virtual void forget_recordings() {}
  /// Returns what people should know by now: slower ways that had to be taken.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
};

/// The parts that an executor borrows. All of them must outlive the executor.
struct ExecutorParts {
  std::array<Arena*, kTiers> arenas{};  ///< null if no Program uses the tier
  Disk* disk = nullptr;                 ///< the disk tier; null if no Program uses it
  comm::Communicators communicators;    ///< cover all axes that collectives name
  std::vector<Observer*> observers;
  /// Run what the host does beside a device; null if no Program has any. One thread uses them.
  kernels::Stream* host_stream = nullptr;
  const kernels::KernelTable* host_kernels = nullptr;
};

/// Makes an executor with a thread per queue: the compute queue's uses `compute_stream` and its
/// pool; the communication queue's alone calls the communicator. Waiting threads sleep.
std::unique_ptr<Executor> make_cpu_executor(ExecutorParts parts,
                                            const kernels::KernelTable& kernels,
                                            kernels::Stream& compute_stream,
                                            kernels::Stream& communication_stream);

/// Says whether a device executor may record and replay Programs (CUDA graphs). Bits are the same.
enum class Recordings : std::uint8_t { on, off };

/// Makes an executor whose queues are streams of `device`; the calling thread enqueues the whole
/// list in its order. A Program runs unrecorded at first; later the stretches between instructions
/// that need the host (collectives of a communicator that runs on the host) are recorded and
/// replayed, unless an observer wants the device's times. If a recording fails (HostError), runs
/// stay unrecorded from then on, and notes() says so. If there are peers, waits look for their
/// deaths. `device` outlives the executor.
std::unique_ptr<Executor> make_stream_executor(ExecutorParts parts, kernels::Device& device,
                                               Recordings recordings);

}  // namespace strata::runtime
