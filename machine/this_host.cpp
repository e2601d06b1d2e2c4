#include "machine/this_host.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "core/system_call.h"
#include "kernels/cpu/cpu_features.h"
#include "machine/memory_cgroup.h"

namespace strata::machine {
namespace {

/// Returns an unknown figure if there is no limit.
Figure locked_bytes() {
  rlimit limit{};
  checked(::getrlimit(RLIMIT_MEMLOCK, &limit), "reading the limit of locked memory");
  if (limit.rlim_cur == RLIM_INFINITY) return {};
  return measured(std::max(1.0, static_cast<double>(limit.rlim_cur)));  // 0 would mean no limit
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

Machine look_at_this_host() {
  const std::vector<int> cores = allowed_cores();
  const int threads = std::max(1, static_cast<int>(cores.size()));
  const int vector_bits = kernels::detect_cpu_features().vector_bits();
  Machine machine = cpu_machine(threads, vector_bits);
  machine.processor = {.name = processor_name(),
                       .cores = measured(threads),
                       .vector_bits = measured(vector_bits),
                       .numa = find_numa_nodes(cores)};
  HostMemory& memory = machine.memory;
  memory.bytes = measured(static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<double>(::sysconf(_SC_PAGESIZE)));
  if (const auto group = tightest_memory_cgroup())
    memory.allowed_bytes = measured(static_cast<double>(group->least_limit_bytes));
  memory.locked_bytes = locked_bytes();
  return machine;
}

Machine placed_on(Machine machine, const Machine& host) {
  Processor processor = host.processor;
  if (machine.host_is_device()) {
    processor.cores = machine.processor.cores;
    processor.vector_bits = machine.processor.vector_bits;
  }
  machine.processor = std::move(processor);
  machine.memory = {.bytes = host.memory.bytes,
                    .allowed_bytes = host.memory.allowed_bytes,
                    .locked_bytes = host.memory.locked_bytes,
                    .bytes_per_second = machine.memory.bytes_per_second};
  return machine;
}

}  // namespace strata::machine
