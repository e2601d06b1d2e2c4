#include "runtime/execute/outlet_disk.h"

#include <utility>

#include "core/check.h"
#include "runtime/program/arena_alignment.h"

namespace strata::runtime {
namespace {

/// The ticket of a transfer that ended as it was started. No disk uses this value.
constexpr Disk::Ticket kDone = -2;

}  // namespace

OutletDisk::OutletDisk(Disk* disk, Outlet outlet) : disk_(disk), outlet_(outlet) {
  STRATA_CHECK(outlet.begin % kDiskAlignment == 0 && outlet.end % kDiskAlignment == 0 &&
                   outlet.begin <= outlet.end,
               outlet.begin, outlet.end);
}

void OutletDisk::set_receiver(Receiver receiver) {
  const std::lock_guard lock(mutex_);
  receiver_ = std::move(receiver);
}

std::int64_t OutletDisk::bytes() const {
  return outlet_.bytes() + (disk_ != nullptr ? disk_->bytes() : 0);
}

Disk& OutletDisk::disk_behind(std::int64_t& offset, std::size_t bytes) const {
  STRATA_CHECK(disk_ != nullptr && (offset >= outlet_.end ||
                                    offset + static_cast<std::int64_t>(bytes) <= outlet_.begin),
               "a transfer touches the outlet", offset, bytes, outlet_.begin, outlet_.end);
  offset = outlet_.behind(offset);
  return *disk_;
}

Disk::Ticket OutletDisk::start_read(std::int64_t offset, std::span<std::byte> to,
                                    std::string_view what) {
  Disk& disk = disk_behind(offset, to.size());
  return disk.start_read(offset, to, what);
}

Disk::Ticket OutletDisk::start_write(std::int64_t offset, std::span<const std::byte> from,
                                     std::string_view what) {
  if (offset < outlet_.begin || offset >= outlet_.end) {
    Disk& disk = disk_behind(offset, from.size());
    return disk.start_write(offset, from, what);
  }
  STRATA_CHECK(offset + static_cast<std::int64_t>(from.size()) <= outlet_.end, what,
               "leaves the outlet");
  const std::lock_guard lock(mutex_);
  if (receiver_) receiver_(offset - outlet_.begin, from);
  given_bytes_ += static_cast<std::int64_t>(from.size());
  return kDone;
}

void OutletDisk::discard(std::int64_t offset, std::int64_t bytes) {
  Disk& disk = disk_behind(offset, static_cast<std::size_t>(bytes));
  disk.discard(offset, bytes);
}

void OutletDisk::wait(Ticket ticket) {
  if (ticket != kDone) disk_->wait(ticket);
}

void OutletDisk::read_bytes(std::int64_t offset, std::span<std::byte> to, std::string_view what) {
  Disk& disk = disk_behind(offset, to.size());
  disk.read_bytes(offset, to, what);
}

void OutletDisk::write_bytes(std::int64_t offset, std::span<const std::byte> from,
                             std::string_view what) {
  Disk& disk = disk_behind(offset, from.size());
  disk.write_bytes(offset, from, what);
}

DiskCounters OutletDisk::counters() const {
  DiskCounters all = disk_ != nullptr ? disk_->counters() : DiskCounters{};
  all.written_bytes += given_bytes_;
  return all;
}

}  // namespace strata::runtime
