#include "train/engine/engine_memory.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "runtime/program/arena_alignment.h"

namespace strata::train {

namespace {

/// Makes one arena per tier that is used; collectives work on the device's.
std::array<runtime::Arena, runtime::kTiers> make_arenas(const compile::StepPrograms& programs,
                                                        const ExecutionSite& site) {
  std::array<runtime::Arena, runtime::kTiers> arenas;
  for (const runtime::Tier tier : runtime::kAllTiers)
    if (const std::int64_t bytes = programs.arena_bytes(tier);
        bytes > 0 && tier != runtime::Tier::disk)
      arenas[static_cast<std::size_t>(tier)] = site.make_arena(tier, bytes);
  return arenas;
}

/// Returns null if snapshots hold no records on the disk.
std::unique_ptr<runtime::SnapshotDisk> make_records(const compile::StepPrograms& programs,
                                                    runtime::Disk* disk) {
  if (programs.snapshot_records.empty()) return nullptr;
  const runtime::Outlet outlet = programs.outlet();
  std::vector<runtime::SnapshotDisk::Record> records;
  for (const std::string& name : programs.snapshot_records) {
    const runtime::PersistentValue& value = programs.persistent.find(name);
    records.push_back({outlet.behind(value.offset_bytes),
                       runtime::room_of(value.type.span_bytes(), runtime::Tier::disk)});
  }
  std::ranges::sort(records, {}, &runtime::SnapshotDisk::Record::offset);
  return std::make_unique<runtime::SnapshotDisk>(
      *disk, records, programs.disk_bytes() - programs.second_places_bytes());
}

/// Returns null if snapshots have no windows.
std::unique_ptr<runtime::OutletDisk> make_outlet(const compile::StepPrograms& programs,
                                                 runtime::Disk* disk) {
  const runtime::Outlet outlet = programs.outlet();
  if (outlet.bytes() == 0) return nullptr;
  return std::make_unique<runtime::OutletDisk>(disk, outlet);
}

std::vector<step::WindowRun> runs_of(const step::StateEntry& entry, std::int64_t first,
                                     std::int64_t count) {
  STRATA_CHECK(first >= 0 && count >= 0 && first + count <= entry.window.elements, entry.name,
               first, count, entry.window.elements);
  return step::runs_of(entry.window, first, count);
}

/// Concatenates what read(run, buffer) returns for each run. If there is one run alone, returns its
/// bytes without copying; otherwise a copy in `buffer`.
template <typename Read>
std::span<const std::byte> join(const step::StateEntry& entry, std::int64_t first,
                                std::int64_t count, std::vector<std::byte>& buffer,
                                const Read& read) {
  const std::vector<step::WindowRun> runs = runs_of(entry, first, count);
  if (runs.size() == 1) return read(runs.front(), buffer);
  std::vector<std::byte> joined, part;
  joined.reserve(static_cast<std::size_t>(count * size_of(entry.dtype)));
  for (const step::WindowRun& run : runs) {
    const std::span<const std::byte> bytes = read(run, part);
    joined.insert(joined.end(), bytes.begin(), bytes.end());
  }
  buffer = std::move(joined);
  return buffer;
}

}  // namespace

EngineMemory::EngineMemory(const compile::StepPrograms& programs, const ExecutionSite& site,
                           runtime::Disk* disk)
    : programs_(programs),
      arenas_(make_arenas(programs, site)),
      records_(make_records(programs, disk)),
      outlet_(make_outlet(programs, records_ ? records_.get() : disk)),
      disk_(outlet_    ? outlet_.get()
            : records_ ? records_.get()
                       : disk) {
  STRATA_CHECK(programs.arena_bytes(runtime::Tier::disk) <= (disk_ ? disk_->bytes() : 0),
               "Programs use the disk tier, which the engine was not given");
}

EngineMemory::Place EngineMemory::place(const std::string& name) const {
  const runtime::PersistentValue& value = programs_.persistent.find(name);
  return {&value, value.offset_bytes, value.type.span_bytes()};
}

EngineMemory::Place EngineMemory::place(const step::StateEntry& entry,
                                        const step::WindowRun& run) const {
  const Place whole = place(entry.storage);
  const std::int64_t size = size_of(entry.dtype);
  return {whole.value, whole.offset_bytes + (entry.storage_element + run.storage_element) * size,
          run.elements * size};
}

bool EngineMemory::on_host(const Place& place) const {
  return !place.on_disk() && arena(place.value->tier).on_host();
}

std::byte* EngineMemory::address(const Place& place) const {
  return arena(place.value->tier).base() + place.offset_bytes;
}

std::span<const std::byte> EngineMemory::read(const Place& place,
                                              std::vector<std::byte>& buffer) const {
  const auto bytes = static_cast<std::size_t>(place.bytes);
  if (on_host(place)) return {address(place), bytes};
  buffer.resize(bytes);
  if (place.on_disk())
    disk_->read_bytes(place.offset_bytes, buffer, place.value->name);
  else
    arena(place.value->tier).device().copy_now(buffer.data(), address(place), place.bytes);
  return buffer;
}

void EngineMemory::write(const Place& place, std::span<const std::byte> bytes) const {
  STRATA_CHECK(static_cast<std::int64_t>(bytes.size()) == place.bytes, bytes.size(), place.bytes);
  if (on_host(place))
    std::memcpy(address(place), bytes.data(), bytes.size());
  else if (place.on_disk())
    disk_->write_bytes(place.offset_bytes, bytes, place.value->name);
  else
    arena(place.value->tier).device().copy_now(address(place), bytes.data(), place.bytes);
}

void EngineMemory::clear(const std::string& name) const {
  const Place at = place(name);
  STRATA_CHECK(!at.on_disk(), name, "lies on the disk");
  if (on_host(at))
    std::memset(address(at), 0, static_cast<std::size_t>(at.bytes));
  else
    arena(at.value->tier).device().clear_now(address(at), at.bytes);
}

std::vector<std::span<std::byte>> EngineMemory::numbers() const {
  const runtime::Arena& arena = this->arena(runtime::Tier::device);
  std::vector<std::span<std::byte>> parts;
  if (arena.bytes() == 0 || arena.on_host()) return parts;
  const std::span<std::byte> all(arena.base(), static_cast<std::size_t>(arena.bytes()));
  const runtime::PersistentLayout& layout = programs_.persistent;
  parts.push_back(all.subspan(static_cast<std::size_t>(layout.bytes(runtime::Tier::device))));
  for (const runtime::PersistentValue& value : layout.values())
    if (value.tier == runtime::Tier::device &&
        (value.role == runtime::Role::parameter || value.role == runtime::Role::gradient))
      parts.push_back(all.subspan(static_cast<std::size_t>(value.offset_bytes),
                                  static_cast<std::size_t>(value.type.span_bytes())));
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](std::span<std::byte> part) { return part.size(); });
  return parts;
}

void EngineMemory::fill_with_numbers() const {
  const std::vector<std::span<std::byte>> parts = numbers();
  if (parts.empty()) return;
  kernels::Device& device = arena(runtime::Tier::device).device();
  // Sign and mantissa of bf16 at random, its exponent one of four: 1/128 to 1/8. A number of 32 bit
  // is as large, and one of fp16 between 1 and 1.5.
  std::vector<std::uint16_t> block(std::size_t{1} << 20);
  std::minstd_rand random(1);
  for (std::uint16_t& number : block) {
    const auto bits = static_cast<std::uint16_t>(random() >> 8);
    number = static_cast<std::uint16_t>((bits & 0x81ff) | 0x3c00);
  }
  const std::span<std::byte> source = parts.front();
  std::size_t filled = std::min(block.size() * sizeof block[0], source.size());
  device.copy_now(source.data(), block.data(), static_cast<std::int64_t>(filled));
  const auto repeat = [&](std::byte* to, std::size_t bytes) {
    device.copy_now(to, source.data(), static_cast<std::int64_t>(bytes));
    return bytes;
  };
  while (filled < source.size())
    filled += repeat(source.data() + filled, std::min(filled, source.size() - filled));
  for (const std::span<std::byte> part : std::span(parts).subspan(1))
    repeat(part.data(), part.size());
}

void EngineMemory::clear_numbers() const {
  for (const std::span<std::byte> part : numbers())
    arena(runtime::Tier::device)
        .device()
        .clear_now(part.data(), static_cast<std::int64_t>(part.size()));
}

std::span<std::byte> EngineMemory::storage(const std::string& name) const {
  const Place at = place(name);
  STRATA_CHECK(on_host(at), "the host cannot touch", name);
  return {address(at), static_cast<std::size_t>(at.bytes)};
}

std::span<std::byte> EngineMemory::storage(const step::StateEntry& entry) const {
  const Place at = place(entry, {.elements = storage_extent(entry.window)});
  STRATA_CHECK(on_host(at), "the host cannot touch", entry.name);
  return {address(at), static_cast<std::size_t>(at.bytes)};
}

std::span<const std::byte> EngineMemory::read(const step::StateEntry& entry, std::int64_t first,
                                              std::int64_t count,
                                              std::vector<std::byte>& buffer) const {
  return join(entry, first, count, buffer,
              [&](const step::WindowRun& run, std::vector<std::byte>& into) {
                return read(place(entry, run), into);
              });
}

std::span<const std::byte> EngineMemory::read_snapshot(const step::StateEntry& entry,
                                                       std::int64_t first, std::int64_t count,
                                                       std::vector<std::byte>& buffer) const {
  return join(entry, first, count, buffer,
              [&](const step::WindowRun& run, std::vector<std::byte>& into) {
                return read_held(entry, run, into);
              });
}

/// Reads a run as it is in the last snapshot.
std::span<const std::byte> EngineMemory::read_held(const step::StateEntry& entry,
                                                   const step::WindowRun& run,
                                                   std::vector<std::byte>& buffer) const {
  const std::int64_t size = size_of(entry.dtype);
  const std::int64_t begin = (entry.storage_element + run.storage_element) * size;
  const std::int64_t bytes = run.elements * size;
  if (entry.tier == runtime::Tier::disk) {
    const Place at = place(entry, run);
    buffer.resize(static_cast<std::size_t>(at.bytes));
    records_->read_held(at.offset_bytes, buffer, entry.name);
    return buffer;
  }
  const auto& pieces = programs_.snapshot_pieces;
  const auto next = std::ranges::upper_bound(
      pieces, std::pair(std::string_view(entry.storage), begin), {},
      [](const auto& piece) { return std::pair(std::string_view(piece.storage), piece.begin); });
  STRATA_CHECK(next != pieces.begin(), entry.name, "is in no snapshot");
  const step::SnapshotPiece& piece = *std::prev(next);
  STRATA_CHECK(piece.storage == entry.storage && begin + bytes <= piece.end &&
                   piece.tier != runtime::Tier::disk,
               entry.name, "is in no snapshot");
  Place at = place(piece.copy);
  at.offset_bytes += begin - piece.begin;
  at.bytes = bytes;
  return read(at, buffer);
}

void EngineMemory::set_snapshot_receiver(SnapshotReceiver receiver) {
  if (!outlet_) return;
  if (!receiver) return outlet_->set_receiver(nullptr);
  const std::int64_t begin = programs_.outlet().begin;
  std::map<std::int64_t, const step::SnapshotPiece*> pieces;  // by place in the outlet
  for (const step::SnapshotPiece& piece : programs_.snapshot_pieces)
    pieces[programs_.persistent.find(piece.copy).offset_bytes - begin] = &piece;
  outlet_->set_receiver([pieces = std::move(pieces), receiver = std::move(receiver)](
                            std::int64_t offset, std::span<const std::byte> window) {
    const step::SnapshotPiece& piece = *pieces.at(offset);
    receiver(piece.storage, piece.begin,
             window.first(static_cast<std::size_t>(piece.end - piece.begin)));
  });
}

std::span<const std::byte> EngineMemory::read(const std::string& name,
                                              std::vector<std::byte>& buffer) const {
  return read(place(name), buffer);
}

void EngineMemory::write(const step::StateEntry& entry, std::int64_t first,
                         std::span<const std::byte> bytes) const {
  const std::int64_t size = size_of(entry.dtype);
  for (const step::WindowRun& run :
       runs_of(entry, first, static_cast<std::int64_t>(bytes.size()) / size))
    write(place(entry, run), bytes.subspan(static_cast<std::size_t>(run.element * size),
                                           static_cast<std::size_t>(run.elements * size)));
}

void EngineMemory::write(const std::string& name, std::span<const std::byte> bytes) const {
  write(place(name), bytes);
}

void EngineMemory::hold_snapshot() {
  if (records_) records_->hold();
}

void EngineMemory::release_snapshot() {
  if (outlet_) outlet_->set_receiver(nullptr);
  if (records_) records_->release();
}

}  // namespace strata::train
