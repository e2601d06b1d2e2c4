#include "offload/nvme/nvme_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
#include "offload/nvme/aligned_memory.h"

namespace strata::offload {
namespace {

/// "read 4096 bytes of tensor x".
std::string action(Direction direction, std::int64_t bytes, std::string_view what) {
  return std::string(direction == Direction::read ? "read " : "write ") + std::to_string(bytes) +
         " bytes of " + std::string(what);
}

/// The bytes of an extent, which lies in the piece.
std::span<std::byte> memory_of(const Piece& piece, const Extent& extent) {
  return {piece.memory + (extent.offset - piece.offset), static_cast<std::size_t>(extent.bytes)};
}

/// Bytes of a read that no extent covers.
void zero_gaps(const Piece& piece) {
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

// Errors go to another thread: the exceptions that they are copied from end here, before it learns
// of them.
std::exception_ptr failed(const std::string& path, const Piece& piece, int error_number) {
  const bool is_short = error_number == Lane::kShort;
  return std::make_exception_ptr(
      IoError(path, static_cast<std::uint64_t>(piece.device_offset),
              "cannot " + action(piece.direction, piece.bytes, piece.what) +
                  (is_short ? ": the device transfers fewer, again and again" : ""),
              is_short ? 0 : error_number));
}

std::exception_ptr differs(const std::string& path, std::int64_t at, std::int64_t bytes,
                           std::string_view what) {
  return std::make_exception_ptr(
      DataError(path + " at byte " + std::to_string(at) + ": " + std::to_string(bytes) +
                " bytes of " + std::string(what) +
                " are not what was written, also when read again: the disk, its connection or this "
                "machine's memory is faulty"));
}

}  // namespace

NvmeStore::NvmeStore(std::vector<StoreDevice> devices, std::int64_t bytes,
                     const StoreOptions& options)
    : options_(options),
      bytes_(bytes),
      stripes_{options.stripe_bytes, static_cast<int>(devices.size())},
      extents_(bytes),
      workers_(options.checksums ? options.hash_threads : 0) {
  STRATA_CHECK(!devices.empty() && bytes % runtime::kDiskAlignment == 0, devices.size(), bytes);
  STRATA_CHECK(options.stripe_bytes > 0 && options.stripe_bytes % kBlockBytes == 0,
               options.stripe_bytes);
  for (StoreDevice& device : devices) {
    paths_.push_back(std::move(device.path));
    lanes_.push_back(std::make_unique<Lane>(
        std::move(device.io), options.settings.depth,
        [this](std::shared_ptr<Piece> piece, int error) { piece_ended(std::move(piece), error); }));
  }
  use(options.settings);
}

NvmeStore::~NvmeStore() {
  for (const auto& lane : lanes_) lane->stop();
  workers_.finish();
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
  // Requests carry one kind of pointer; a write only reads from it.
  return start(Direction::write, offset, const_cast<std::byte*>(from.data()), bytes, what);
}

void NvmeStore::check_range(std::int64_t offset, const std::byte* memory, std::size_t bytes,
                            std::string_view what) const {
  const auto aligned = [](std::uintptr_t value) { return value % runtime::kDiskAlignment == 0; };
  if (!aligned(static_cast<std::uintptr_t>(offset)) || !aligned(bytes) ||
      !aligned(reinterpret_cast<std::uintptr_t>(memory)))
    throw InternalError(std::string(what) + ": a disk transfer of " + std::to_string(bytes) +
                        " bytes at " + std::to_string(offset) + " is not aligned to " +
                        std::to_string(runtime::kDiskAlignment));
  if (offset < 0 || offset > bytes_ || static_cast<std::int64_t>(bytes) > bytes_ - offset)
    throw InternalError(std::string(what) + ": a disk transfer of " + std::to_string(bytes) +
                        " bytes at " + std::to_string(offset) + " leaves the space of " +
                        std::to_string(bytes_) + " bytes");
}

void NvmeStore::isolate(std::int64_t border, std::string_view what) {
  if (border == bytes_ || !extents_.across(border)) return;
  const std::lock_guard lock(isolate_mutex_);
  const std::optional<Extent> extent = extents_.across(border);
  if (!extent) return;  // another thread was faster
  if (!options_.checksums) return extents_.split(border, 0, 0);
  const AlignedMemory copy(extent->bytes);
  wait(start(Direction::read, extent->offset, copy.bytes().data(), extent->bytes, what));
  const auto left = static_cast<std::size_t>(border - extent->offset);
  extents_.split(border, hash_64(copy.bytes().first(left)), hash_64(copy.bytes().subspan(left)));
}

runtime::Disk::Ticket NvmeStore::start(Direction direction, std::int64_t offset, std::byte* memory,
                                       std::int64_t bytes, std::string_view what) {
  std::vector<Piece> pieces = cut(direction, offset, memory, bytes, what);
  if (direction == Direction::read)
    std::erase_if(pieces, [](const Piece& piece) {
      if (!piece.extents.empty()) return false;
      zero_gaps(piece);
      return true;
    });
  const bool hashed = direction == Direction::write && options_.checksums;
  auto owned = std::make_unique<Transfer>();
  Transfer* transfer = owned.get();
  transfer->direction = direction;
  transfer->bytes = bytes;
  transfer->remaining = static_cast<std::int64_t>(pieces.size()) * (hashed ? 2 : 1);
  const Ticket ticket = admit(std::move(owned));
  for (Piece& piece : pieces) {
    piece.transfer = transfer;
    auto shared = std::make_shared<Piece>(std::move(piece));
    lanes_[static_cast<std::size_t>(stripes_.device(shared->offset))]->push(shared);
    // The bytes are stable until the ticket was waited for: hash and transfer may overlap.
    if (hashed) workers_.post([this, shared] { hash(*shared); });
  }
  return ticket;
}

std::vector<Piece> NvmeStore::cut(Direction direction, std::int64_t offset, std::byte* memory,
                                  std::int64_t bytes, std::string_view what) {
  const std::int64_t request_bytes = settings().request_bytes;
  std::vector<Extent> extents = direction == Direction::write
                                    ? extents_.write(offset, bytes, options_.checksums)
                                    : extents_.written(offset, bytes, what);
  std::vector<Piece> pieces;
  auto extent = extents.begin();
  for (std::int64_t at = offset; at < offset + bytes;) {
    const auto border = [at](std::int64_t step) { return (at / step + 1) * step; };
    const std::int64_t end =
        std::min({offset + bytes, border(request_bytes), border(stripes_.stripe_bytes)});
    Piece piece{.what = what,
                .direction = direction,
                .offset = at,
                .device_offset = stripes_.device_offset(at),
                .memory = memory + (at - offset),
                .bytes = end - at};
    for (; extent != extents.end() && extent->offset < end; ++extent)
      piece.extents.push_back(*extent);
    pieces.push_back(std::move(piece));
    at = end;
  }
  return pieces;
}

runtime::Disk::Ticket NvmeStore::admit(std::unique_ptr<Transfer> transfer) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return unfinished_ < options_.most_transfers; });
  if (transfer->remaining > 0)
    ++unfinished_;
  else
    counters_.read_bytes += transfer->bytes;  // zeros alone
  transfer->progress = std::chrono::steady_clock::now();
  const Ticket ticket = next_ticket_++;
  transfers_.emplace(ticket, std::move(transfer));
  return ticket;
}

void NvmeStore::hash(Piece& piece) {
  for (const Extent& extent : piece.extents)
    extents_.set_hash({extent.offset, extent.bytes, hash_64(memory_of(piece, extent))});
  progress(*piece.transfer);
}

void NvmeStore::verify(const std::shared_ptr<Piece>& piece) {
  for (const Extent& extent : piece->extents) {
    if (hash_64(memory_of(*piece, extent)) == extent.hash) continue;
    if (!std::exchange(piece->reread, true))
      return lanes_[static_cast<std::size_t>(stripes_.device(piece->offset))]->push(piece);
    const std::int64_t at = piece->device_offset + (extent.offset - piece->offset);
    return progress(*piece->transfer, differs(path_of(*piece), at, extent.bytes, piece->what));
  }
  zero_gaps(*piece);
  progress(*piece->transfer);
}

void NvmeStore::piece_ended(std::shared_ptr<Piece> piece, int error_number) {
  if (error_number != 0)
    return progress(*piece->transfer, failed(path_of(*piece), *piece, error_number));
  if (piece->direction == Direction::write) return progress(*piece->transfer);
  if (options_.checksums) return workers_.post([this, moved = std::move(piece)] { verify(moved); });
  zero_gaps(*piece);
  progress(*piece->transfer);
}

void NvmeStore::progress(Transfer& transfer, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  transfer.progress = std::chrono::steady_clock::now();
  if (error && !transfer.error) transfer.error = std::move(error);
  if (--transfer.remaining > 0) return;
  if (!transfer.error)
    (transfer.direction == Direction::read ? counters_.read_bytes : counters_.written_bytes) +=
        transfer.bytes;
  --unfinished_;
  room_.notify_one();
  transfer.finished.notify_all();  // under the lock: afterwards the transfer may be gone
}

void NvmeStore::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  const auto found = transfers_.find(ticket);
  if (found == transfers_.end())
    throw InternalError("disk transfer " + std::to_string(ticket) + " was waited for before");
  Transfer& transfer = *found->second;
  while (!transfer.finished.wait_for(lock, options_.stuck_after / 4,
                                     [&transfer] { return transfer.remaining == 0; }))
    throw_if_stuck(transfer);
  const std::exception_ptr error = transfer.error;
  transfers_.erase(ticket);
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

void NvmeStore::throw_if_stuck(const Transfer& transfer) const {
  const auto limit = std::chrono::steady_clock::now() - options_.stuck_after;
  if (transfer.progress > limit) return;
  for (const Transfer* whose : {&transfer, static_cast<const Transfer*>(nullptr)})
    for (std::size_t device = 0; device < lanes_.size(); ++device) {
      const std::optional<Underway> oldest = lanes_[device]->oldest(whose);
      if (!oldest || oldest->since > limit) continue;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::steady_clock::now() - oldest->since);
      throw IoError(paths_[device], static_cast<std::uint64_t>(oldest->device_offset),
                    "the request to " + action(oldest->direction, oldest->bytes, oldest->what) +
                        " has been under way for " + std::to_string(seconds.count()) + " s",
                    ETIMEDOUT);
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
    add_note("the system does not register " + std::to_string(bytes) +
             " bytes for disk transfers (" + std::strerror(refused) +
             "; limit on locked memory, ulimit -l): they go on unregistered, at some cost in "
             "processor time");
  }
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

const std::string& NvmeStore::path_of(const Piece& piece) const {
  return paths_[static_cast<std::size_t>(stripes_.device(piece.offset))];
}

}  // namespace strata::offload
