// Runs Programs. Loading binds operands to addresses and kernels once; running allocates nothing
// and decides nothing.
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

/// One execution of a Program, numbered from 0 in the order in which they were started.
using RunNumber = std::int64_t;

/// Programs started one after another run in that order; a later one may begin on a queue before
/// the earlier one has ended on another, as far as its border waits allow. One caller thread.
///
/// After an error the executor is poisoned: nothing new starts, the communicator is aborted, and
/// every call that waits throws the first error, with its instruction.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Binds a Program; returns its handle. Throws InternalError when a kernel is missing.
  virtual int load(Program program) = 0;
  [[nodiscard]] virtual const Program& program(int handle) const = 0;
  /// Enqueues; waits only while two Programs are under way. `step` is for observers.
  virtual RunNumber start(int handle, std::int64_t step) = 0;
  /// Waits until `run` has read its staged inputs (runtime/passes/staging.h): from then on the host
  /// may write those of the next.
  virtual void wait_inputs_read(RunNumber run) = 0;
  /// Waits for `run` to end.
  virtual void wait(RunNumber run) = 0;
  /// Waits for all that was started.
  virtual void wait_all() = 0;
  /// Waits for all, and lets go of what it recorded: a communicator that took part in a recording
  /// cannot close before.
  virtual void forget_recordings() {}
  /// What people should know by now: slower ways that had to be taken.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
};

/// What an executor borrows; all must outlive it.
struct ExecutorParts {
  std::array<Arena*, kTiers> arenas{};  ///< null where no Program uses the tier
  Disk* disk = nullptr;                 ///< the disk tier, where a Program uses it
  comm::Communicators communicators;    ///< of every axis that a Program's collectives name
  std::vector<Observer*> observers;
  /// What the host runs beside a device; null where no Program has any. Used by one thread.
  kernels::Stream* host_stream = nullptr;
  const kernels::KernelTable* host_kernels = nullptr;
};

/// One thread per queue; the compute queue's thread uses `stream` and its pool, only the
/// communication queue's thread calls the communicator. Waits sleep.
std::unique_ptr<Executor> make_cpu_executor(ExecutorParts parts,
                                            const kernels::KernelTable& kernels,
                                            kernels::Stream& compute_stream,
                                            kernels::Stream& communication_stream);

/// Whether a device executor may record Programs and replay them (CUDA graphs). Bits are the same.
enum class Recordings : std::uint8_t { on, off };

/// Queues are streams of `device`; the calling thread enqueues the whole list in its order. A
/// Program runs plainly at first; later its stretches between two instructions that need the host
/// (collectives of a communicator that runs on the host) are recorded and replayed, unless an
/// observer wants the device's times. A recording that fails (HostError) ends recordings: runs stay
/// plain, and notes() says so. Where there are peers, waits look for their deaths.
/// `device` outlives the executor.
std::unique_ptr<Executor> make_stream_executor(ExecutorParts parts, kernels::Device& device,
                                               Recordings recordings);

}  // namespace strata::runtime
