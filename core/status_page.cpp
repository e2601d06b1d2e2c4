#include "core/status_page.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "core/check.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/shown_text.h"
#include "core/system_call.h"

namespace strata {
namespace {

constexpr std::uint64_t kPageMagic = 0x6567'6170'5441'5453;  // "STATpage"
constexpr std::uint32_t kVersion = 9;
constexpr const char* kSameBuild = "; start programs and launcher from the same build";
constexpr std::array<std::string_view, 11> kPhaseNames{"starting", "loading", "planning", "forward",
                                                       "backward", "update",  "evaluate", "running",
                                                       "saving",   "done",    "failed"};

// The page is shared between processes; the lock of a locking atomic would be private to one.
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

StatusPageData* map_page(int fd) {
  void* address =
      ::mmap(nullptr, sizeof(StatusPageData), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) throw_system_error("mapping a status page");
  return static_cast<StatusPageData*>(address);
}

template <std::size_t Size>
void copy_text(char (&target)[Size], std::string_view text) {
  const std::size_t count = std::min(text.size(), Size - 1);
  std::memcpy(target, text.data(), count);
  target[count] = '\0';
}

}  // namespace

std::string_view name_of(Phase phase) {
  const auto index = static_cast<std::size_t>(phase);
  return index < kPhaseNames.size() ? kPhaseNames[index] : "?";
}

StatusPage StatusPage::create(int rank, int attempt) {
  UniqueFd fd(checked(::memfd_create("strata-status", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                      "creating the memory file of a status page"));
  checked(::ftruncate(fd.get(), sizeof(StatusPageData)), "sizing a status page");
  // Reserved memory and a sealed size: reading the page later can never raise SIGBUS.
  checked(::fallocate(fd.get(), 0, 0, sizeof(StatusPageData)), "reserving a status page");
  checked(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
          "sealing a status page");
  auto* data = new (map_page(fd.get())) StatusPageData{};
  data->rank = rank;
  data->version = kVersion;
  data->step.store(-1, std::memory_order_relaxed);
  data->instruction.store(-1, std::memory_order_relaxed);
  data->attempt = attempt;
  data->phase_since_ns.store(boot_time_ns(), std::memory_order_relaxed);
  data->committed_step.store(-1, std::memory_order_relaxed);
  data->failed_save_step.store(-1, std::memory_order_relaxed);
  data->loss.store(std::numeric_limits<double>::quiet_NaN(), std::memory_order_relaxed);
  data->lease_until_ns.store(kNoLeaseEnd, std::memory_order_relaxed);
  data->magic = kPageMagic;
  return StatusPage(std::move(fd), data);
}

StatusPage StatusPage::open(int fd) {
  struct stat info {};
  checked(::fstat(fd, &info), "opening a status page");
  if (info.st_size != static_cast<off_t>(sizeof(StatusPageData)))
    throw HostError(fmt::format("the status page has {} bytes, expected {}{}", info.st_size,
                                sizeof(StatusPageData), kSameBuild));
  UniqueFd own(checked(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "duplicating a status page"));
  StatusPage page(std::move(own), map_page(fd));
  if (page.data_->magic != kPageMagic || page.data_->version != kVersion)
    throw HostError(fmt::format("the status page has layout version {}, expected {}{}",
                                page.data_->version, kVersion, kSameBuild));
  return page;
}

StatusPage::StatusPage(UniqueFd fd, StatusPageData* data) : fd_(std::move(fd)), data_(data) {}

StatusPage::StatusPage(StatusPage&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)) {}

StatusPage& StatusPage::operator=(StatusPage&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  return *this;
}

StatusPage::~StatusPage() {
  if (data_ != nullptr) STRATA_CHECK(::munmap(data_, sizeof(StatusPageData)) == 0);
}

void StatusPage::set_step(std::int64_t step) {
  data_->step.store(step, std::memory_order_relaxed);
  beat();
}

void StatusPage::set_phase(Phase phase) {
  const auto number = static_cast<std::uint32_t>(phase);
  if (data_->phase.exchange(number, std::memory_order_relaxed) != number)
    data_->phase_since_ns.store(boot_time_ns(), std::memory_order_relaxed);
  beat();
}

void StatusPage::add_work(double seconds) {
  data_->work_ns.fetch_add(std::llround(seconds * 1e9), std::memory_order_relaxed);
  data_->worked_steps.fetch_add(1, std::memory_order_relaxed);
}

void StatusPage::set_instruction(std::int64_t index, std::string_view name) {
  copy_text(data_->instruction_name, name);
  data_->instruction.store(index, std::memory_order_relaxed);
  if (index >= 0)
    data_->events.begin(RankEvent::Kind::instruction, index, name);
  else
    end_instruction();
  beat();
}

void StatusPage::end_instruction() { data_->events.end(RankEvent::Kind::instruction); }

void StatusPage::begin_collective(std::int64_t number, std::string_view name) {
  copy_text(data_->collective_name, name);
  data_->collective.store(number, std::memory_order_relaxed);
  data_->events.begin(RankEvent::Kind::collective, number, name);
  beat();
}

void StatusPage::end_collective() {
  data_->collective_name[0] = '\0';
  data_->events.end(RankEvent::Kind::collective);
  beat();
}

void StatusPage::set_error(std::string_view message) {
  if (data_->error[0] == '\0') copy_text(data_->error, message);
}

void StatusPage::beat() { data_->beats.fetch_add(1, std::memory_order_relaxed); }

void StatusPage::set_quiet(double seconds) {
  data_->quiet_ns.store(static_cast<std::int64_t>(1e9 * seconds), std::memory_order_relaxed);
  beat();
}

void StatusPage::set_committed(std::int64_t step, std::string_view folder) {
  copy_text(data_->checkpoint, folder);
  data_->committed_step.store(step, std::memory_order_release);
  beat();
}

void StatusPage::set_failed_save(std::int64_t step, std::string_view why) {
  copy_text(data_->failed_save, why);
  if (data_->failed_save_step.load(std::memory_order_relaxed) < 0)
    data_->saves_fail_since_ns.store(boot_time_ns(), std::memory_order_relaxed);
  data_->failed_save_step.store(step, std::memory_order_release);
  beat();
}

void StatusPage::forget_failed_save() {
  data_->failed_save_step.store(-1, std::memory_order_release);
  beat();
}

void StatusPage::set_rates(double loss, double tokens_per_second) {
  data_->loss.store(loss, std::memory_order_relaxed);
  data_->tokens_per_second.store(tokens_per_second, std::memory_order_relaxed);
  beat();
}

void StatusPage::set_lease(std::int64_t until_ns) {
  data_->lease_until_ns.store(until_ns, std::memory_order_release);
}

void StatusPage::order_stop(std::string_view reason) {
  if (data_->stop.load(std::memory_order_relaxed) != 0) return;
  copy_text(data_->stop_reason, reason);
  data_->stop.store(1, std::memory_order_release);
}

bool StatusPage::lease_ended() const {
  return boot_time_ns() > data_->lease_until_ns.load(std::memory_order_acquire);
}

std::optional<std::string> StatusPage::stop_reason() const {
  if (data_->stop.load(std::memory_order_acquire) == 0) return {};
  return shown_text(data_->stop_reason);
}

std::string StatusPage::collective_name() const { return shown_text(data_->collective_name); }

std::string StatusPage::instruction_name() const { return shown_text(data_->instruction_name); }

std::string StatusPage::describe() const {
  const std::int64_t step = data_->step.load(std::memory_order_relaxed);
  const std::int64_t instruction = data_->instruction.load(std::memory_order_relaxed);
  const std::string collective = collective_name();
  std::string text = step >= 0 ? fmt::format("step {}, ", step) : std::string();
  text += name_of(static_cast<Phase>(data_->phase.load(std::memory_order_relaxed)));
  if (instruction >= 0)
    text += fmt::format(", instruction {} '{}'", instruction, instruction_name());
  if (!collective.empty())
    text += fmt::format(", in collective {} '{}'",
                        data_->collective.load(std::memory_order_relaxed), collective);
  return text;
}

}  // namespace strata
