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
  /// Collective. If something lives on the disk, or may because of --plan, rank 0 measures it for
  /// about a second, in at most `most_bytes` of memory, and tells the others. Throws ConfigError
  /// without a path, and IoError naming a path that cannot be used.
  RunDisk(const TrainOptions& options, comm::Communicator& ranks,
          std::int64_t most_bytes = kUnlimitedMemory);

  /// Puts the measurements into `machine`, for one of `ranks` on this host that use the same drives
  /// at the same time.
  void add_to(machine::Machine& machine, int ranks) const;
  /// Says with the amounts that the paths have no room for `bytes` from each of `ranks`; empty if
  /// they have. A path that is missing has none; one whose file system does not tell has enough.
  [[nodiscard]] std::string lacking_room(std::int64_t bytes, int ranks) const;
  /// Reserves this rank's space. Throws IoError naming the path, needed and available bytes.
  void open(std::int64_t bytes);
  /// Registers memory for transfers; it must outlive this object or the next registration.
  void register_memory(std::span<std::byte> memory);
  /// The open disk; null if nothing lives there.
  [[nodiscard]] runtime::Disk* disk() const { return store_.get(); }
  /// Size of the files, with all their blocks reserved.
  [[nodiscard]] std::int64_t reserved_bytes() const;
  /// One line with paths and rates; empty without a disk.
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  void measure(std::int64_t most_bytes);
  void share(comm::Communicator& ranks);

  const OffloadOptions& options_;
  bool used_ = false;
  machine::Disk measured_;  ///< shared by all ranks
  std::unique_ptr<offload::NvmeStore> store_;
};

}  // namespace strata::train
