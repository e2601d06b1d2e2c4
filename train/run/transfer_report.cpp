#include "train/run/transfer_report.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/json_writer.h"
#include "core/system_call.h"

namespace strata::train {
namespace {

using runtime::Queue;

constexpr std::array<std::pair<Queue, const char*>, 4> kBetweenTiers{
    {{Queue::disk_read, "disk_read"},
     {Queue::disk_write, "disk_write"},
     {Queue::upload, "upload"},
     {Queue::download, "download"}}};

void write(JsonWriter& json, const char* name, const runtime::QueueBytes& bytes) {
  json.key(name).begin_object();
  for (const auto& [queue, key] : kBetweenTiers)
    json.member(key, bytes[static_cast<std::size_t>(queue)]);
  json.end_object();
}

}  // namespace

std::int64_t resident_bytes(const runtime::Arena& arena) {
  if (!arena.on_host()) return arena.bytes();
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages(static_cast<std::size_t>((arena.bytes() + page - 1) / page));
  const int result = ::mincore(arena.base(), static_cast<std::size_t>(arena.bytes()), pages.data());
  checked(result, "mincore");
  return page * std::ranges::count_if(pages, [](unsigned char flags) { return (flags & 1) != 0; });
}

std::string describe_transfers(const std::vector<runtime::ProgramTally>& programs,
                               const MovedBytes& moved, const std::vector<TierUse>& arenas) {
  JsonWriter json(0);
  json.begin_object().key("programs").begin_array();
  for (const runtime::ProgramTally& tally : programs) {
    json.begin_object().member("name", tally.program).member("runs", tally.runs);
    write(json, "bytes", tally.always);
    write(json, "conditional_bytes", tally.conditional);
    json.end_object();
  }
  json.end_array().key("moved_bytes").begin_object();
  json.member("disk_read", moved.disk.read_bytes).member("disk_write", moved.disk.written_bytes);
  if (moved.copied)
    json.member("upload", (*moved.copied)[static_cast<std::size_t>(Queue::upload)])
        .member("download", (*moved.copied)[static_cast<std::size_t>(Queue::download)]);
  json.end_object().key("arenas").begin_object();
  for (const TierUse& use : arenas)
    json.key(name_of(use.tier))
        .begin_object()
        .member("planned_bytes", use.planned)
        .member("used_bytes", use.used)
        .end_object();
  return json.end_object().end_object().finish();
}

}  // namespace strata::train
