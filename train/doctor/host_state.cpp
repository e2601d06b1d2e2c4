#include "train/doctor/host_state.h"

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "core/system_call.h"
#include "core/unique_fd.h"
#include "kernels/cpu/cpu_features.h"
#include "machine/host_memory.h"
#include "offload/nvme/disk_alignment.h"
#include "offload/nvme/memory_slices.h"
#include "offload/nvme/uring_io.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// More than the usual limit on locked memory (8 MiB), and enough for a few disk windows.
constexpr std::int64_t kTriedBytes = std::int64_t{64} << 20;

/// Cores' worth of time granted to the group at the mount point, which is a container's own.
double cpu_quota() {
  const fs::path root = "/sys/fs/cgroup";
  double quota = 0, period = 0;
  if (std::ifstream(root / "cpu.max") >> quota >> period && period > 0) return quota / period;
  std::ifstream(root / "cpu/cpu.cfs_quota_us") >> quota;
  std::ifstream(root / "cpu/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : 0;
}

/// The word in brackets of "always [madvise] never".
std::string huge_page_policy() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  for (std::string word; file >> word;)
    if (word.front() == '[') return word.substr(1, word.size() - 2);
  return "";
}

TransferFacts find_transfers() {
  TransferFacts facts;
  UniqueFd file(checked(::memfd_create("strata-doctor", MFD_CLOEXEC), "memfd_create"));
  const auto io = offload::make_uring_io(file, 8, facts.why_no_uring);
  if (!io) return facts;
  const offload::AlignedMemory memory(kTriedBytes);
  const std::span<std::byte> bytes = memory.bytes();
  facts.tried_bytes = kTriedBytes;
  facts.registered = io->register_memory(offload::MemorySlices({&bytes, 1})) == 0;
  io->register_memory({});
  return facts;
}

}  // namespace

HostState look_at_host_state() {
  HostState state;
  state.instructions = kernels::detect_cpu_features().to_string();
  state.online_cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  state.cpu_quota = cpu_quota();
  state.available_bytes = machine::available_host_bytes();
  state.cgroup = machine::tightest_memory_cgroup();
  state.huge_pages = huge_page_policy();
  state.transfers = find_transfers();
  return state;
}

}  // namespace strata::train
