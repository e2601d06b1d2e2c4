// The disk tier of a run: measured before planning, opened when its size is known.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "machine/machine.h"
#include "offload/nvme/nvme_store.h"
#include "train/config/options.h"

namespace strata::train {

class RunDisk {
 public:
  /// Collective. Where something is to live on the disk, or may by --plan, rank 0 measures it for
  /// about a second and tells the others. Throws ConfigError without a path, IoError naming a path
  /// that cannot serve.
  RunDisk(const TrainOptions& options, comm::Communicator& ranks);

  /// Puts what was measured into `machine`, that of one of `ranks` of this host which use the same
  /// drives at the same times.
  void add_to(machine::Machine& machine, int ranks) const;
  /// Throws HostError with the amounts when the paths have no room for `bytes` of each of `ranks`.
  void require_room(std::int64_t bytes, int ranks) const;
  /// Reserves this rank's space. Throws IoError naming the path, needed and available bytes.
  void open(std::int64_t bytes);
  /// Memory that transfers will use; it stays until this object is gone or other memory is named.
  void register_memory(std::span<std::byte> memory);
  /// nullptr where nothing lives on the disk.
  [[nodiscard]] runtime::Disk* disk() const { return store_.get(); }
  /// Size of the files, all of whose blocks are reserved.
  [[nodiscard]] std::int64_t reserved_bytes() const;
  /// One line: paths and rates; empty without a disk.
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  void measure();
  void share(comm::Communicator& ranks);

  const OffloadOptions& options_;
  bool used_ = false;
  machine::Disk measured_;  ///< of all ranks together
  std::unique_ptr<offload::NvmeStore> store_;
};

}  // namespace strata::train
