#include "offload/nvme/nvme_store.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
#include "offload/nvme/disk_alignment.h"
#include "runtime/program/arena_alignment.h"

namespace strata::offload {
namespace {

/// The most tickets not waited for. A ticket has 43 more bits to count the uses of its transfer,
/// which suffices for any run.
constexpr runtime::Disk::Ticket kTickets = runtime::Disk::Ticket{1} << 20;

/// Number of threads that hash; on a small machine a second one would only take turns with others.
int hash_threads(const StoreOptions& options) {
  if (!options.checksums) return 0;
  if (options.hash_threads > 0) return options.hash_threads;
  return std::thread::hardware_concurrency() < 4 ? 1 : 2;
}

/// Describes a request: "read 4096 bytes of tensor x".
std::string action(Direction direction, std::int64_t bytes, std::string_view what) {
  return fmt::format("{} {} bytes of {}", direction == Direction::read ? "read" : "write", bytes,
                     what);
}

/// Returns the bytes of an extent of the piece.
std::span<std::byte> memory_of(const TransferPiece& piece, const Extent& extent) {
  return {piece.memory + (extent.offset - piece.offset), static_cast<std::size_t>(extent.bytes)};
}

/// Zeroes the bytes of a read that no extent covers.
void zero_gaps(const TransferPiece& piece) {
  std::int64_t reached = piece.offset;
  const auto zero_until = [&](std::int64_t end) {
    std::fill_n(piece.memory + (reached - piece.offset), end - reached, std::byte{0});
  };
  for (const Extent& extent : piece.extents) {
    zero_until(extent.offset);
    reached = extent.end();
  }
  zero_until(piece.offset + piece.bytes);
}

// The originals of exceptions are destroyed in these functions, before another thread learns of the
// copies.
std::exception_ptr failed(const std::string& path, const TransferPiece& piece, int error_number) {
  const bool is_short = error_number == Lane::kShort;
  return std::make_exception_ptr(
      IoError(path, static_cast<std::uint64_t>(piece.device_offset),
              "cannot " + action(piece.direction, piece.bytes, piece.what) +
                  (is_short ? ": the device transfers fewer, again and again" : ""),
              is_short ? 0 : error_number));
}

std::exception_ptr differs(const std::string& path, std::int64_t at, std::int64_t bytes,
                           std::string_view what) {
  return std::make_exception_ptr(DataError(
      fmt::format("{} at byte {}: {} bytes of {} are not what was written, also when read again: "
                  "the disk, its connection or this machine's memory is faulty",
                  path, at, bytes, what)));
}

}  // namespace

NvmeStore::NvmeStore(std::vector<StoreDevice> devices, std::int64_t bytes,
                     const StoreOptions& options)
    : options_(options),
      bytes_(bytes),
      stripes_{options.stripe_bytes, static_cast<int>(devices.size())},
      extents_(bytes),
      workers_(hash_threads(options)) {
  STRATA_CHECK(!devices.empty() && bytes % runtime::kDiskAlignment == 0, devices.size(), bytes);
  STRATA_CHECK(options.stripe_bytes > 0 && options.stripe_bytes % kBlockBytes == 0,
               options.stripe_bytes);
  for (StoreDevice& device : devices) {
    paths_.push_back(std::move(device.path));
    lanes_.push_back(std::make_unique<Lane>(
        std::move(device.io), options.settings.depth,
        [this](TransferPiece& piece, int error) { transferred(piece, error); }));
  }
  use(options.settings);
}

NvmeStore::~NvmeStore() {
  workers_.finish();  // before the lanes go: a job may push to one
  for (auto& lane : lanes_) Lane::stop_or_abandon(std::move(lane), options_.stuck_after, kept_);
}

runtime::Disk::Ticket NvmeStore::start_read(std::int64_t offset, std::span<std::byte> to,
                                            std::string_view what) {
  check_range(offset, to.data(), to.size(), what);
  const auto bytes = static_cast<std::int64_t>(to.size());
  isolate(offset, what);
  isolate(offset + bytes, what);
  return start(Direction::read, offset, to.data(), bytes, what);
}

runtime::Disk::Ticket NvmeStore::start_write(std::int64_t offset, std::span<const std::byte> from,
                                             std::string_view what) {
  check_range(offset, from.data(), from.size(), what);
  const auto bytes = static_cast<std::int64_t>(from.size());
  isolate(offset, what);
  isolate(offset + bytes, what);
  // const_cast: requests have one type of pointer, and a write only reads from it.
  return start(Direction::write, offset, const_cast<std::byte*>(from.data()), bytes, what);
}

void NvmeStore::check_range(std::int64_t offset, const std::byte* memory, std::size_t bytes,
                            std::string_view what) const {
  const auto aligned = [](std::uintptr_t value) { return value % runtime::kDiskAlignment == 0; };
  if (!aligned(static_cast<std::uintptr_t>(offset)) || !aligned(bytes) ||
      !aligned(reinterpret_cast<std::uintptr_t>(memory)))
    throw InternalError(fmt::format("{}: a disk transfer of {} bytes at {} is not aligned to {}",
                                    what, bytes, offset, runtime::kDiskAlignment));
  if (offset < 0 || offset > bytes_ || static_cast<std::int64_t>(bytes) > bytes_ - offset)
    throw InternalError(
        fmt::format("{}: a disk transfer of {} bytes at {} leaves the space of {} bytes", what,
                    bytes, offset, bytes_));
}

void NvmeStore::isolate(std::int64_t border, std::string_view what) {
  if (border == bytes_ || !extents_.across(border)) return;
  const std::lock_guard lock(isolate_mutex_);
  const std::optional<Extent> extent = extents_.across(border);
  if (!extent) return;  // another thread has split it
  if (!options_.checksums) return extents_.split(border, 0, 0);
  const TransferMemory copy(*this, extent->bytes, what);
  wait(start(Direction::read, extent->offset, copy.bytes().data(), extent->bytes, copy.what()));
  const auto left = static_cast<std::size_t>(border - extent->offset);
  extents_.split(border, hash_64(copy.bytes().first(left)), hash_64(copy.bytes().subspan(left)));
}

runtime::Disk::Ticket NvmeStore::start(Direction direction, std::int64_t offset, std::byte* memory,
                                       std::int64_t bytes, std::string_view what) {
  Transfer& transfer = admit(direction, memory, bytes);
  const Ticket ticket = transfer.ticket;
  try {
    if (direction == Direction::write)
      extents_.write(offset, bytes, options_.checksums, transfer.extents);
    else
      extents_.written(offset, bytes, what, transfer.extents);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --unfinished_;
    recycle(transfer);
    throw;
  }
  push_pieces(transfer, offset, memory, bytes, what);
  const std::lock_guard lock(mutex_);
  piece_ended(transfer);  // counts as one until the start is complete
  return ticket;
}

void NvmeStore::push_pieces(Transfer& transfer, std::int64_t offset, std::byte* memory,
                            std::int64_t bytes, std::string_view what) {
  const std::int64_t request_bytes = settings().request_bytes;
  std::span<const Extent> extents = transfer.extents;
  for (std::int64_t at = offset; at < offset + bytes;) {
    const auto border = [at](std::int64_t step) { return (at / step + 1) * step; };
    const std::int64_t end =
        std::min({offset + bytes, border(request_bytes), border(stripes_.stripe_bytes)});
    std::size_t inside = 0;
    while (inside < extents.size() && extents[inside].offset < end) ++inside;
    const TransferPiece made{.transfer = &transfer,
                             .what = what,
                             .direction = transfer.direction,
                             .offset = at,
                             .device_offset = stripes_.device_offset(at),
                             .memory = memory + (at - offset),
                             .bytes = end - at,
                             .extents = extents.first(inside)};
    extents = extents.subspan(inside);
    at = end;
    if (made.extents.empty()) {  // a read of bytes that were never written
      zero_gaps(made);
      continue;
    }
    const bool hashed = made.direction == Direction::write && options_.checksums;
    TransferPiece& piece = take_piece(transfer);
    piece = made;
    piece.remaining = hashed ? 2 : 1;
    lane_of(piece).push(piece);
    // The bytes are stable until the ticket has been waited for, so hash and transfer may overlap.
    if (hashed) workers_.post([this, &piece] { hash(piece); });
  }
}

Transfer& NvmeStore::admit(Direction direction, const std::byte* memory, std::int64_t bytes) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return unfinished_ < options_.most_transfers; });
  ++unfinished_;
  Transfer& transfer = transfers_.take();
  STRATA_CHECK(static_cast<Ticket>(transfers_.size()) <= kTickets, "transfers are not waited for");
  // A ticket is the transfer's index, below kTickets, plus kTickets for each earlier use.
  transfer.ticket =
      transfer.ticket < 0 ? static_cast<Ticket>(transfers_.size()) - 1 : transfer.ticket + kTickets;
  transfer.in_use = true;
  transfer.direction = direction;
  transfer.memory = memory;
  transfer.bytes = bytes;
  transfer.remaining = 1;
  transfer.found_stuck = false;
  transfer.progress = std::chrono::steady_clock::now();
  return transfer;
}

TransferPiece& NvmeStore::take_piece(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  ++transfer.remaining;
  return pieces_.take();
}

Lane& NvmeStore::lane_of(const TransferPiece& piece) {
  return *lanes_[static_cast<std::size_t>(stripes_.device(piece.offset))];
}

void NvmeStore::hash(TransferPiece& piece) {
  for (const Extent& extent : piece.extents)
    extents_.set_hash({extent.offset, extent.bytes, hash_64(memory_of(piece, extent))});
  done(piece);
}

void NvmeStore::verify(TransferPiece& piece) {
  for (const Extent& extent : piece.extents) {
    if (hash_64(memory_of(piece, extent)) == extent.hash) continue;
    if (!std::exchange(piece.reread, true)) return lane_of(piece).push(piece);
    const std::int64_t at = piece.device_offset + (extent.offset - piece.offset);
    return done(piece, differs(path_of(piece), at, extent.bytes, piece.what));
  }
  zero_gaps(piece);
  done(piece);
}

void NvmeStore::transferred(TransferPiece& piece, int error_number) {
  if (error_number != 0) return done(piece, failed(path_of(piece), piece, error_number));
  if (piece.direction == Direction::write) return done(piece);
  if (options_.checksums) return workers_.post([this, &piece] { verify(piece); });
  zero_gaps(piece);
  done(piece);
}

void NvmeStore::done(TransferPiece& piece, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  Transfer& transfer = *piece.transfer;
  transfer.progress = std::chrono::steady_clock::now();
  if (error && !transfer.error) transfer.error = std::move(error);
  if (--piece.remaining > 0) return;
  pieces_.give(piece);
  piece_ended(transfer);
}

void NvmeStore::piece_ended(Transfer& transfer) {
  if (--transfer.remaining > 0) return;
  if (!transfer.error)
    (transfer.direction == Direction::read ? counters_.read_bytes : counters_.written_bytes) +=
        transfer.bytes;
  --unfinished_;
  room_.notify_one();
  transfer.finished.notify_all();
}

void NvmeStore::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  Transfer& transfer = find(ticket);
  while (!transfer.finished.wait_for(lock, options_.stuck_after / 4,
                                     [&transfer] { return transfer.remaining == 0; }))
    throw_if_stuck(transfer);
  const std::exception_ptr error = std::exchange(transfer.error, nullptr);
  recycle(transfer);
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

Transfer& NvmeStore::find(Ticket ticket) {
  const auto index = static_cast<std::size_t>(ticket % kTickets);
  if (ticket < 0 || index >= transfers_.size() || transfers_[index].ticket != ticket ||
      !transfers_[index].in_use)
    throw InternalError(fmt::format("disk transfer {} was waited for before", ticket));
  return transfers_[index];
}

void NvmeStore::recycle(Transfer& transfer) {
  transfer.in_use = false;
  transfer.extents.clear();
  transfers_.give(transfer);
}

void NvmeStore::throw_if_stuck(Transfer& transfer) const {
  const auto limit = std::chrono::steady_clock::now() - options_.stuck_after;
  if (transfer.progress > limit) return;
  for (const Transfer* whose : {&transfer, static_cast<Transfer*>(nullptr)})
    for (std::size_t device = 0; device < lanes_.size(); ++device) {
      const std::optional<Underway> oldest = lanes_[device]->oldest(whose);
      if (!oldest || oldest->since > limit) continue;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::steady_clock::now() - oldest->since);
      transfer.found_stuck = true;
      throw IoError(
          paths_[device], static_cast<std::uint64_t>(oldest->device_offset),
          fmt::format("the request to {} has been under way for {} s",
                      action(oldest->direction, oldest->bytes, oldest->what), seconds.count()),
          0);
    }
}

runtime::DiskCounters NvmeStore::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

bool NvmeStore::register_memory(std::span<const std::span<std::byte>> ranges) {
  for (const auto& range : ranges) check_range(0, range.data(), 0, "registered memory");
  const MemorySlices slices(ranges);
  bool registered = true;
  for (std::size_t device = 0; device < lanes_.size(); ++device) {
    const int refused = lanes_[device]->register_memory(slices);
    if (refused == 0) continue;
    registered = false;
    std::int64_t bytes = 0;
    for (const auto& range : ranges) bytes += static_cast<std::int64_t>(range.size());
    add_note(
        fmt::format("the system does not register {} bytes for disk transfers ({}; limit on locked "
                    "memory, ulimit -l): they go on unregistered, at some cost in processor time",
                    bytes, std::strerror(refused)));
  }
  const std::lock_guard lock(mutex_);
  registered_.assign(ranges.begin(), ranges.end());
  return registered;
}

void NvmeStore::use(const TransferSettings& settings) {
  STRATA_CHECK(settings.request_bytes > 0 && settings.request_bytes % kBlockBytes == 0,
               settings.request_bytes);
  for (const auto& lane : lanes_) lane->set_depth(settings.depth);
  const std::lock_guard lock(mutex_);
  settings_ = settings;
}

TransferSettings NvmeStore::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

void NvmeStore::forget() {
  extents_.clear();
  const std::lock_guard lock(mutex_);
  counters_ = {};
}

void NvmeStore::add_note(const std::string& note) {
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
}

const std::string& NvmeStore::path_of(const TransferPiece& piece) const {
  return paths_[static_cast<std::size_t>(stripes_.device(piece.offset))];
}

}  // namespace strata::offload
