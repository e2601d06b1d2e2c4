#include "train/run/run_disk.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/format_bytes.h"
#include "core/round_up.h"
#include "core/system_call.h"
#include "offload/nvme/open_store.h"
#include "offload/nvme/probe.h"
#include "offload/nvme/space_file.h"
#include "train/config/make_plan.h"

namespace strata::train {
namespace {

/// True if the run uses a drive; a Plan from a file, or one for a target of memory, may use any
/// drive that is named.
bool uses_disk(const TrainOptions& options) {
  return choices_of(options).uses(plan::Home::disk) ||
         ((!options.plan.empty() || !options.target.memory.empty()) &&
          !options.offload.nvme_paths.empty());
}

}  // namespace

RunDisk::RunDisk(const TrainOptions& options, comm::Communicator& ranks, std::int64_t most_bytes)
    : options_(options.offload), used_(uses_disk(options)) {
  if (!used_) return;
  if (options_.nvme_paths.empty())
    throw ConfigError(
        "offload to nvme needs a folder on the drive: give --nvme-path DIR, or "
        "\"nvme_path\" beside \"device\": \"nvme\"");
  if (ranks.rank() == 0) measure(most_bytes);
  share(ranks);
}

void RunDisk::measure(std::int64_t most_bytes) {
  offload::StoreRequest request;
  request.directories = options_.nvme_paths;
  request.bytes = offload::probe_bytes(options_.nvme_paths);
  request.options.checksums = options_.checksums;
  const auto store = offload::open_store(request);
  measured_ = offload::probe(*store, offload::kProbeTime, most_bytes);
}

/// Gives all ranks rank 0's numbers, since all must schedule alike.
void RunDisk::share(comm::Communicator& ranks) {
  const auto agreed = [&](std::int64_t mine) { return comm::gather_numbers(ranks, mine)[0]; };
  for (machine::Figure* rate : {&measured_.read_rate, &measured_.write_rate, &measured_.mixed_rate})
    *rate = machine::measured(static_cast<double>(agreed(rate->whole())));
  measured_.request_bytes = agreed(measured_.request_bytes);
  measured_.depth = static_cast<int>(agreed(measured_.depth));
  if (options_.request_bytes > 0) measured_.request_bytes = options_.request_bytes;
  if (options_.queue_depth > 0) measured_.depth = static_cast<int>(options_.queue_depth);
}

void RunDisk::add_to(machine::Machine& machine, int ranks) const {
  if (!measured_.read_rate.known()) return;
  machine.disk = share_of_rank(measured_, ranks);
}

std::string RunDisk::lacking_room(std::int64_t bytes, int ranks) const {
  if (!used_ || bytes == 0) return "";
  std::int64_t room = std::numeric_limits<std::int64_t>::max();  // striped: each takes as much
  for (const std::string& path : options_.nvme_paths)
    room = std::min(room, offload::free_bytes(path));
  const auto drives = static_cast<std::int64_t>(options_.nvme_paths.size());
  // Compares what one drive holds: a file system that does not tell has the most that can be said.
  if (divide_up(bytes * ranks, drives) <= room) return "";
  return fmt::format(
      "out of disk space: {} rank(s) need {} bytes each on --nvme-path, and {} are free", ranks,
      bytes, room * drives);
}

void RunDisk::open(std::int64_t bytes) {
  if (!used_ || bytes == 0) return;
  offload::StoreRequest request;
  request.directories = options_.nvme_paths;
  request.bytes = bytes;
  request.options.settings = {measured_.request_bytes, measured_.depth};
  request.options.checksums = options_.checksums;
  store_ = offload::open_store(request);
}

void RunDisk::register_memory(std::span<std::byte> memory) {
  if (store_ && !memory.empty()) store_->register_memory({&memory, 1});
}

std::int64_t RunDisk::reserved_bytes() const {
  std::int64_t bytes = 0;
  for (int device = 0; store_ && device < store_->devices(); ++device) {
    struct stat file {};
    checked(::fstat(store_->file(device), &file), "fstat");
    bytes += file.st_size;
  }
  return bytes;
}

std::string RunDisk::description() const {
  if (!used_) return "";
  std::string text;
  for (const std::string& path : options_.nvme_paths) text += (text.empty() ? "" : " + ") + path;
  if (!measured_.read_rate.known()) return text + ": too little free space to measure";
  char rates[128];
  std::snprintf(rates, sizeof rates, ": %s/s read, %s/s written, %lld MiB x %d at a time",
                format_bytes(measured_.read_rate).c_str(),
                format_bytes(measured_.write_rate).c_str(),
                static_cast<long long>(measured_.request_bytes >> 20), measured_.depth);
  return text + rates;
}

std::vector<std::string> RunDisk::notes() const {
  return store_ ? store_->notes() : std::vector<std::string>{};
}

}  // namespace strata::train
