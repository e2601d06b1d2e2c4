#include "train/doctor/machine_facts.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "core/system_call.h"
#include "core/unique_fd.h"
#include "kernels/cpu/cpu_features.h"
#include "offload/nvme/aligned_memory.h"
#include "offload/nvme/memory_slices.h"
#include "offload/nvme/uring_io.h"
#include "train/config/byte_size.h"
#include "train/run/host_memory.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// More than the usual limit on locked memory, 8 MiB; what a few disk windows take.
constexpr std::int64_t kTriedBytes = std::int64_t{64} << 20;

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// Cores' worth of time in the group at the mount point, which is a container's own.
double cpu_quota() {
  const fs::path root = "/sys/fs/cgroup";
  double quota = 0, period = 0;
  if (std::ifstream(root / "cpu.max") >> quota >> period && period > 0) return quota / period;
  std::ifstream(root / "cpu/cpu.cfs_quota_us") >> quota;
  std::ifstream(root / "cpu/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : 0;
}

CoreFacts find_cores() {
  CoreFacts cores;
  cores.online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  cores.allowed = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : cores.online;
  cores.quota = cpu_quota();
  return cores;
}

MemoryFacts find_memory() {
  MemoryFacts memory;
  memory.total_bytes =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  memory.available_bytes = available_host_bytes();
  memory.cgroup = tightest_memory_cgroup();
  return memory;
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
  rlimit limit{};
  checked(::getrlimit(RLIMIT_MEMLOCK, &limit), "reading the limit of locked memory");
  facts.locked_limit_bytes = limit.rlim_cur == RLIM_INFINITY
                                 ? kUnlimitedMemory
                                 : static_cast<std::int64_t>(limit.rlim_cur);
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

MachineFacts find_machine_facts() {
  MachineFacts facts;
  facts.processor = processor_name();
  facts.instructions = kernels::detect_cpu_features().to_string();
  facts.cores = find_cores();
  facts.memory = find_memory();
  facts.numa_nodes = find_numa_nodes();
  facts.huge_pages = huge_page_policy();
  facts.transfers = find_transfers();
  return facts;
}

}  // namespace strata::train
