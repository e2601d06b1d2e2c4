// The memory of an engine's state: an arena for each tier of memory, and the disk. Layers in front
// of the disk hold a snapshot's records still and pass on what goes through windows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/execute/arena.h"
#include "runtime/execute/outlet_disk.h"
#include "runtime/execute/snapshot_disk.h"
#include "runtime/program/persistent_layout.h"
#include "step/state_table.h"
#include "train/engine/build_programs.h"
#include "train/engine/execution_site.h"

namespace strata::train {

/// Receives what of a snapshot goes through windows (runtime::SaveMemory::windows): a storage's
/// bytes from `begin` on, in pieces of any order, on a thread of the executor. Must not throw.
using SnapshotReceiver = std::function<void(const std::string& storage, std::int64_t begin,
                                            std::span<const std::byte> bytes)>;

/// The engine's memory; borrows its constructor's arguments.
class EngineMemory {
 public:
  /// `disk`: of compile::StepPrograms::disk_bytes; null if the Programs need none.
  EngineMemory(const compile::StepPrograms& programs, const ExecutionSite& site,
               runtime::Disk* disk);

  [[nodiscard]] const runtime::Arena& arena(runtime::Tier tier) const {
    return arenas_[static_cast<std::size_t>(tier)];
  }
  [[nodiscard]] runtime::Arena& arena(runtime::Tier tier) {
    return arenas_[static_cast<std::size_t>(tier)];
  }
  /// The disk that Programs use; null if there is none.
  [[nodiscard]] runtime::Disk* disk() const { return disk_; }

  /// Functions that do what Engine's of the same names do.
  [[nodiscard]] std::span<std::byte> storage(const std::string& name) const;
  [[nodiscard]] std::span<std::byte> storage(const step::StateEntry& entry) const;
  [[nodiscard]] std::span<const std::byte> read(const step::StateEntry& entry, std::int64_t first,
                                                std::int64_t count,
                                                std::vector<std::byte>& buffer) const;
  [[nodiscard]] std::span<const std::byte> read(const std::string& name,
                                                std::vector<std::byte>& buffer) const;
  [[nodiscard]] std::span<const std::byte> read_snapshot(const step::StateEntry& entry,
                                                         std::int64_t first, std::int64_t count,
                                                         std::vector<std::byte>& buffer) const;
  void write(const step::StateEntry& entry, std::int64_t first,
             std::span<const std::byte> bytes) const;
  void write(const std::string& name, std::span<const std::byte> bytes) const;
  /// Zeroes the storage of this name, which does not lie on the disk.
  void clear(const std::string& name) const;
  /// Fills parameters, gradients and all that is not persistent in the arena of a device with
  /// finite numbers of both signs, whichever type of 16 or 32 bit reads them; or zeroes it. Does
  /// nothing where the CPU is the device. Waits for the device.
  void fill_with_numbers() const;
  void clear_numbers() const;

  void set_snapshot_receiver(SnapshotReceiver receiver);
  /// Keeps the present content of records on the disk for read_snapshot(). Nothing may be running.
  void hold_snapshot();
  /// Lets go of the snapshot's records and of the receiver.
  void release_snapshot();

 private:
  /// A place in an arena or on the disk.
  struct Place {
    const runtime::PersistentValue* value;
    std::int64_t offset_bytes;  ///< place in the tier
    std::int64_t bytes;
    [[nodiscard]] bool on_disk() const { return value->tier == runtime::Tier::disk; }
  };
  [[nodiscard]] std::byte* address(const Place& place) const;
  [[nodiscard]] bool on_host(const Place& place) const;
  [[nodiscard]] Place place(const std::string& name) const;
  /// The parts of the device's arena that fill_with_numbers() fills, the largest first.
  [[nodiscard]] std::vector<std::span<std::byte>> numbers() const;
  [[nodiscard]] Place place(const step::StateEntry& entry, const step::WindowRun& run) const;
  [[nodiscard]] std::span<const std::byte> read(const Place& place,
                                                std::vector<std::byte>& buffer) const;
  [[nodiscard]] std::span<const std::byte> read_held(const step::StateEntry& entry,
                                                     const step::WindowRun& run,
                                                     std::vector<std::byte>& buffer) const;
  void write(const Place& place, std::span<const std::byte> bytes) const;

  const compile::StepPrograms& programs_;
  std::array<runtime::Arena, runtime::kTiers> arenas_;
  std::unique_ptr<runtime::SnapshotDisk> records_;
  std::unique_ptr<runtime::OutletDisk> outlet_;  ///< passes on to records_, or to the disk
  runtime::Disk* disk_;
};

}  // namespace strata::train
