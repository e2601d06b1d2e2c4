#include "train/run/run_disk.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "comm/gather_texts.h"
#include "comm/together.h"
#include "core/error.h"
#include "core/system_call.h"
#include "offload/nvme/open_store.h"
#include "offload/nvme/probe.h"
#include "offload/nvme/space_file.h"
#include "train/engine/memory_report.h"

namespace strata::train {
namespace {

bool uses_disk(const OffloadOptions& options) {
  return options.optimizer == OffloadTarget::nvme || options.parameters == OffloadTarget::nvme ||
         options.activations == OffloadTarget::nvme;
}

}  // namespace

RunDisk::RunDisk(const OffloadOptions& options, comm::Communicator& ranks, int sharing)
    : options_(options),
      directories_(options.nvme_paths),
      used_(uses_disk(options)),
      sharing_(sharing) {
  if (!used_) return;
  if (options.nvme_paths.empty())
    throw ConfigError(
        "offload to nvme needs a folder on the drive: give --nvme-path DIR, or "
        "\"nvme_path\" beside \"device\": \"nvme\"");
  if (ranks.rank() == 0) measure();
  share(ranks);
}

void RunDisk::serve_snapshots(const std::string& folder, comm::Communicator& ranks) {
  if (used_) return;
  if (directories_.empty()) directories_ = {folder};
  const auto failure = comm::together(ranks, [&] {
    if (ranks.rank() == 0) measure();
  });
  if (failure)
    throw Error(failure->code, failure->messages[static_cast<std::size_t>(failure->rank)]);
  share(ranks);
  used_ = only_snapshots_ = true;
}

void RunDisk::serve_no_snapshots() {
  if (std::exchange(only_snapshots_, false)) used_ = false;
}

void RunDisk::measure() {
  offload::StoreRequest request;
  request.directories = directories_;
  request.bytes = offload::probe_bytes(directories_);
  request.options.checksums = options_.checksums;
  const auto store = offload::open_store(request);
  const offload::ProbeResult result = offload::probe(*store);
  settings_ = result.settings;
  read_rate_ = result.read_rate;
  write_rate_ = result.write_rate;
}

/// All ranks schedule alike, so they take rank 0's numbers.
void RunDisk::share(comm::Communicator& ranks) {
  const auto agreed = [&](double mine) {
    return static_cast<double>(comm::gather_numbers(ranks, std::llround(mine))[0]);
  };
  read_rate_ = agreed(read_rate_);
  write_rate_ = agreed(write_rate_);
  settings_.request_bytes = comm::gather_numbers(ranks, settings_.request_bytes)[0];
  settings_.depth = static_cast<int>(comm::gather_numbers(ranks, settings_.depth)[0]);
  if (options_.request_bytes > 0) settings_.request_bytes = options_.request_bytes;
  if (options_.queue_depth > 0) settings_.depth = static_cast<int>(options_.queue_depth);
}

void RunDisk::add_to(runtime::MachineRates& rates) const {
  if (read_rate_ > 0) rates.disk_read_bytes = read_rate_ / sharing_;
  if (write_rate_ > 0) rates.disk_write_bytes = write_rate_ / sharing_;
}

void RunDisk::require_room(std::int64_t bytes, int ranks, std::int64_t saved_bytes) const {
  if (!used_ || bytes == 0) return;
  const std::int64_t left = only_snapshots_ ? saved_bytes : 0;
  std::int64_t room = std::numeric_limits<std::int64_t>::max();  // striped: each gets as much
  for (const std::string& path : directories_) room = std::min(room, offload::free_bytes(path));
  room *= static_cast<std::int64_t>(directories_.size());
  if ((bytes + left) * ranks > room)
    throw HostError(
        "out of disk space: " + std::to_string(ranks) + " rank(s) need " + std::to_string(bytes) +
        " bytes each on " + paths() +
        (left > 0 ? ", beside " + std::to_string(left) + " for a checkpoint" : std::string()) +
        ", and " + std::to_string(room) + " are free");
}

void RunDisk::open(std::int64_t bytes) {
  if (!used_ || bytes == 0) return;
  offload::StoreRequest request;
  request.directories = directories_;
  request.bytes = bytes;
  request.options.settings = settings_;
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

std::string RunDisk::paths() const {
  std::string text;
  for (const std::string& path : directories_) text += (text.empty() ? "" : " + ") + path;
  return text;
}

std::string RunDisk::description() const {
  if (!used_) return "";
  const std::string text = paths();
  if (read_rate_ == 0) return text + ": too little free space to measure";
  char rates[128];
  std::snprintf(rates, sizeof rates, ": %s/s read, %s/s written, %lld MiB x %d at a time",
                format_bytes(read_rate_).c_str(), format_bytes(write_rate_).c_str(),
                static_cast<long long>(settings_.request_bytes >> 20), settings_.depth);
  return text + rates;
}

std::vector<std::string> RunDisk::notes() const {
  return store_ ? store_->notes() : std::vector<std::string>{};
}

}  // namespace strata::train
