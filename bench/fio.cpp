#include "bench/fio.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "core/check.h"
#include "core/error.h"
#include "core/json.h"

namespace strata::bench {

std::string fio_command(const FioJob& job, int file, FioMode mode) {
  constexpr std::array<const char*, 3> kModes{"read", "write", "rw"};
  const std::string half = std::to_string(job.bytes / 2);
  std::string command =
      "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --output-format=json --ioengine=io_uring "
      "--direct=1 --fixedbufs=1 "
      "--registerfiles=1 --allow_file_create=0 --overwrite=1";
  command += " --filename=/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file) +
             " --bs=" + std::to_string(job.block);
  const std::string depth = std::to_string(job.depth);
  const auto part = [&](const std::string& name, const std::string& way, const std::string& iodepth,
                        const std::string& place) {
    return " --name=" + name + " --rw=" + way + " --iodepth=" + iodepth + place;
  };
  if (mode != FioMode::mixed)
    return command + part("store", kModes[static_cast<std::size_t>(mode)], depth,
                          " --size=" + std::to_string(job.bytes));
  const std::string each = std::to_string(std::max(1, job.depth / 2));
  return command + " --thread" + part("reader", "read", each, " --size=" + half) +
         part("writer", "write", each, " --size=" + half + " --offset=" + half);
}

double run_fio(const FioJob& job, int file, FioMode mode) {
  const std::string command = fio_command(job, file, mode) + " 2>/dev/null";
  std::string output;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "re"), ::pclose);
  std::array<char, 4096> some{};
  while (pipe && std::fgets(some.data(), some.size(), pipe.get()) != nullptr) output += some.data();
  if (output.empty()) return 0;
  if (output.front() != '{') throw HostError("fio: " + output);
  double bytes = 0;
  double longest_ms = 0;
  for (const JsonValue& done : parse_json(output, "fio", {}).at("jobs").elements()) {
    for (const char* way : {"read", "write"}) {
      const JsonValue part = done.at(way);
      bytes += part.at("io_bytes").as_number();
      longest_ms = std::max(longest_ms, part.at("runtime").as_number());
    }
  }
  STRATA_CHECK(bytes == static_cast<double>(job.bytes), "fio transferred", bytes);
  return bytes / (longest_ms / 1e3);
}

}  // namespace strata::bench
