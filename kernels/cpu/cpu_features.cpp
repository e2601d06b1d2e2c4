#include "kernels/cpu/cpu_features.h"

#include <cpuid.h>
#include <dnnl.h>
#include <fcntl.h>
#include <immintrin.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/unique_fd.h"
#include "hwy/highway.h"

namespace strata::kernels {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);  // zeros for an unknown leaf
  return r;
}

constexpr bool has_bits(std::uint64_t value, std::uint64_t bits) { return (value & bits) == bits; }

/// Returns the state components that the kernel saves: bit 2 AVX, bits 5-7 AVX-512, 17-18 AMX.
std::uint64_t enabled_state() {
  if (!has_bits(cpuid(1, 0).c, bit_OSXSAVE)) return 0;
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

/// Asks Linux for AMX, which is off until a process does so. Returns false if it is refused.
bool request_amx() {
  constexpr int kArchReqXcompPerm = 0x1023;
  constexpr int kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

CpuFeatures announced_features() {
  constexpr unsigned kAmxBf16 = 1u << 22;  // CPUID.7.0:EDX
  constexpr unsigned kAmxTile = 1u << 24;
  constexpr unsigned kAvx512Bf16 = 1u << 5;  // CPUID.7.1:EAX
  constexpr unsigned kAvx512 =
      bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  const std::uint64_t state = enabled_state();
  const Registers basic = cpuid(1, 0);
  const Registers extended = cpuid(7, 0);
  CpuFeatures found;
  found.avx2 = has_bits(state, 0x6) && has_bits(extended.b, bit_AVX2) &&
               has_bits(basic.c, bit_AVX | bit_FMA | bit_F16C);
  found.avx512 = found.avx2 && has_bits(state, 0xe6) && has_bits(extended.b, kAvx512);
  found.avx512_bf16 = found.avx512 && has_bits(cpuid(7, 1).a, kAvx512Bf16);
  found.amx_announced = has_bits(extended.d, kAmxBf16 | kAmxTile);
  found.amx_bf16 =
      found.avx512_bf16 && found.amx_announced && has_bits(state, 0x60000) && request_amx();
  return found;
}

// Each trial executes an instruction of one set.
void try_avx2() { __asm__ volatile("vpaddd %%ymm0, %%ymm0, %%ymm0\n\tvzeroupper" ::: "xmm0"); }
void try_avx512() { __asm__ volatile("vpaddd %%zmm0, %%zmm0, %%zmm0\n\tvzeroupper" ::: "xmm0"); }
void try_avx512_bf16() {
  __asm__ volatile("vdpbf16ps %%zmm0, %%zmm0, %%zmm0\n\tvzeroupper" ::: "xmm0");
}
__attribute__((target("amx-tile,amx-bf16"))) void try_amx_bf16() {
  struct alignas(64) {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16};
  } config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_dpbf16ps(0, 1, 2);
  _tile_release();
}

/// The trials in ascending order: each instruction set contains the ones before it.
constexpr std::array<void (*)(), 4> kTrials = {try_avx2, try_avx512, try_avx512_bf16, try_amx_bf16};

/// Runs in the child: writes a byte to `pipe` after each trial; a trap ends the process.
[[noreturn]] void try_in_child(int count, int pipe) {
  const rlimit no_core_file = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core_file);  // if refused, a core file is all that happens
  for (int number : {SIGILL, SIGSEGV, SIGBUS, SIGTRAP}) signal(number, SIG_DFL);
  for (int i = 0; i < count; ++i) {
    kTrials[static_cast<std::size_t>(i)]();
    if (write(pipe, "", 1) != 1) _exit(1);
  }
  _exit(0);
}

[[noreturn]] void fail(const std::string& call) {
  throw HostError("cannot try CPU instructions in a child process: " + call + ": " +
                  std::strerror(errno));
}

/// Returns how many of the first `count` trials run without a trap.
int try_instructions(int count) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = fork();
  if (child == 0) try_in_child(count, write_end.get());
  if (child < 0) fail("fork");
  write_end.close();
  int worked = 0;
  char byte = 0;
  ssize_t got = 0;
  while ((got = read(read_end.get(), &byte, 1)) != 0) {
    if (got < 0 && errno != EINTR) fail("read");
    if (got == 1) ++worked;
  }
  while (waitpid(child, nullptr, 0) < 0)
    if (errno != EINTR) fail("waitpid");
  return worked;
}

std::int64_t forbidden_highway_targets(const CpuFeatures& features) {
  std::int64_t targets = 0;
  if (!features.avx512) targets |= HWY_AVX3 | HWY_AVX3_DL;
  if (!features.avx2) targets |= HWY_AVX2;
  return targets;
}

/// Returns the name that ONEDNN_MAX_CPU_ISA has for it.
const char* name_of(dnnl_cpu_isa_t isa) {
  switch (isa) {
    case dnnl_cpu_isa_sse41:
      return "sse41";
    case dnnl_cpu_isa_avx:
      return "avx";
    case dnnl_cpu_isa_avx2:
      return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
      return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core:
      return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "other";
  }
}

/// Returns `limit`, or what the environment asks oneDNN for if that is less. (To ask oneDNN itself
/// would settle it.)
dnnl_cpu_isa_t asked_of_onednn(dnnl_cpu_isa_t limit) {
  constexpr std::pair<std::string_view, dnnl_cpu_isa_t> kNames[] = {
      {"SSE41", dnnl_cpu_isa_sse41},
      {"AVX", dnnl_cpu_isa_avx},
      {"AVX2", dnnl_cpu_isa_avx2},
      {"AVX512_CORE", dnnl_cpu_isa_avx512_core},
      {"AVX512_CORE_VNNI", dnnl_cpu_isa_avx512_core_vnni},
      {"AVX512_CORE_BF16", dnnl_cpu_isa_avx512_core_bf16}};
  const char* asked = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (asked == nullptr) asked = std::getenv("DNNL_MAX_CPU_ISA");
  for (const auto& [name, isa] : kNames)
    if (asked != nullptr && name == asked && (isa & ~limit) == 0) return isa;
  return limit;
}

}  // namespace

std::string CpuFeatures::to_string() const {
  std::string text;
  const auto add = [&](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(avx2, "avx2");
  add(avx512, "avx512");
  add(avx512_bf16, "avx512_bf16");
  add(amx_bf16, "amx_bf16");
  add(amx_announced && !amx_bf16, "(amx announced but traps)");
  return text.empty() ? "baseline" : text;
}

CpuFeatures detect_cpu_features() {
  CpuFeatures features = announced_features();
  const int announced = static_cast<int>(features.avx2) + static_cast<int>(features.avx512) +
                        static_cast<int>(features.avx512_bf16) +
                        static_cast<int>(features.amx_bf16);
  const int works = announced == 0 ? 0 : try_instructions(announced);
  features.avx2 = works >= 1;
  features.avx512 = works >= 2;
  features.avx512_bf16 = works >= 3;
  features.amx_bf16 = works >= 4;
  return features;
}

void limit_libraries(const CpuFeatures& features) {
  const CpuFeatures announced = announced_features();
  if (const std::int64_t targets = forbidden_highway_targets(features);
      (targets & hwy::SupportedTargets()) != 0)
    hwy::DisableTargets(targets);
  if (announced == features && features.amx_bf16 == features.amx_announced) return;
  dnnl_cpu_isa_t limit = dnnl_cpu_isa_avx512_core_amx;
  if (!features.amx_bf16) limit = dnnl_cpu_isa_avx512_core_bf16;
  if (!features.avx512_bf16) limit = dnnl_cpu_isa_avx512_core_vnni;
  if (!features.avx512) limit = dnnl_cpu_isa_avx2;
  if (!features.avx2) limit = dnnl_cpu_isa_sse41;
  limit = asked_of_onednn(limit);
  // Refused once oneDNN has run; then an earlier call must have set the same limit.
  if (dnnl_set_max_cpu_isa(limit) != dnnl_success)
    STRATA_CHECK((dnnl_get_effective_cpu_isa() & ~limit) == 0,
                 "oneDNN was used before its limit was set", static_cast<int>(limit));
}

std::string chosen_instruction_sets() {
  limit_libraries(detect_cpu_features());
  const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  const dnnl_version_t& version = *dnnl_version();
  return std::string(hwy::TargetName(usable & -usable)) +  // the best has the lowest bit
         ", oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch) + " " + name_of(dnnl_get_effective_cpu_isa());
}

}  // namespace strata::kernels
