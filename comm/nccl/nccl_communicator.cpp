#include "comm/nccl/nccl_communicator.h"

#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "comm/equal_facts.h"
#include "comm/first_cause.h"
#include "comm/gather_texts.h"
#include "core/check.h"

namespace strata::comm {
namespace {

/// Interval at which a waiting rank checks whether a peer died.
constexpr std::chrono::milliseconds kLivenessInterval{20};

}  // namespace

NcclCommunicator::NcclCommunicator(const NcclFunctions& nccl, Communicator& host, NcclDevice device)
    : nccl_(nccl),
      host_(host),
      device_(std::move(device)),
      levels_(host.seat()),
      contributions_(static_cast<std::size_t>(host.size())) {
  const std::size_t added = levels_.adds[static_cast<std::size_t>(rank() - levels_.first())].size();
  const auto locals = static_cast<std::size_t>(levels_.locals());
  contributions_.resize(std::max(contributions_.size(), added * locals));
  made_.resize(added * levels_.sums.size());
  operands_.resize(levels_.parts.size() + levels_.most_slots);
  addends_.reserve(operands_.size());
  try {
    agree();
    const std::lock_guard lock(mutex_);
    start();
  } catch (...) {
    end_nccl();
    if (ending_.joinable()) ending_.join();
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  end_nccl();
  if (ending_.joinable()) ending_.join();
}

void NcclCommunicator::agree() {
  int version = 0;
  if (nccl_.get_version(&version) != ncclSuccess) version = 0;
  const Fact fact{"NCCL (install the same on all hosts, or name its folder in STRATA_CUDA_PATH)",
                  nccl_version_text(version), device_.library};
  require_equal_facts(host_, device_.host, {&fact, 1});
  const std::vector<std::string> gpus = gather_texts(host_, device_.gpu);
  for (int rank = 1; rank < size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const auto first = std::find(gpus.begin(), gpus.begin() + rank, gpus[r]);
    if (first != gpus.begin() + rank)
      throw InvalidArgument(
          fmt::format("NCCL needs a GPU for each rank, but ranks {} and {} share {}; start fewer "
                      "ranks, or let ranks communicate through the host",
                      first - gpus.begin(), rank, gpus[r]));
  }
}

bool NcclCommunicator::all_have_recorded(bool mine) {
  return std::ranges::min(gather_numbers(host_, mine ? 1 : 0)) == 1;
}

void NcclCommunicator::start() {
  ncclUniqueId id{};
  if (rank() == 0) require(nccl_.get_unique_id(&id), "ncclGetUniqueId");
  const std::string_view mine(id.internal, rank() == 0 ? sizeof id.internal : 0);
  const std::string first = gather_texts(host_, mine).front();
  STRATA_CHECK(first.size() == sizeof id.internal, first.size());
  std::memcpy(id.internal, first.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  require(nccl_.comm_init_rank(&comm_, size(), id, rank(), &config), "ncclCommInitRankConfig");
}

void NcclCommunicator::end_nccl() noexcept {
  dead_ = true;
  if (comm_ == nullptr) return;
  // ncclCommAbort tells NCCL's kernels to end at once, but returns only when no recording holds
  // this communicator; the owner of recordings may be waiting for us. Hence a thread.
  try {
    ending_ = std::thread([abort = nccl_.comm_abort, comm = comm_] { (void)abort(comm); });
  } catch (const std::system_error&) {
    (void)nccl_.comm_abort(comm_);
  }
  comm_ = nullptr;
}

void NcclCommunicator::fail(ncclResult_t result, const std::string& subject) {
  const char* details = nccl_.get_last_error(comm_);
  std::string message =
      subject + " '" + std::string(what_) + "' failed: " + nccl_.get_error_string(result);
  if (details != nullptr && *details != '\0') message += fmt::format(" ({})", details);
  message += "; NCCL_DEBUG=WARN tells more";
  reason_ = attributed(rank(), message);
  end_nccl();
  const bool host_at_fault = result == ncclUnhandledCudaError || result == ncclSystemError;
  host_.abort(reason_, host_at_fault ? ExitCode::host : ExitCode::try_again);
  if (result == ncclRemoteError) throw PeerError(reason_);
  if (host_at_fault) throw HostError(reason_);
  throw InternalError(reason_);
}

void NcclCommunicator::require_alive() {
  STRATA_CHECK(!closed_, "rank", rank(), "after close:", what_);
  if (!dead_) return;
  host_.check();  // throws the first reason of all ranks, if the host knows one
  throw PeerError(reason_.empty() ? "this communicator was aborted" : reason_);
}

void NcclCommunicator::require(ncclResult_t result, const char* call) {
  if (result == ncclInProgress)
    wait_until_taken(call);
  else if (result != ncclSuccess)
    fail(result, std::string(call) + " for");
}

/// NCCL may have to meet peers before it can enqueue: they connect in their first exchange.
void NcclCommunicator::wait_until_taken(const char* call) {
  auto looked = std::chrono::steady_clock::now();
  for (;;) {
    require_alive();
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl_.comm_get_async_error(comm_, &state);
    if (asked != ncclSuccess) fail(asked, "ncclCommGetAsyncError during");
    if (state == ncclSuccess) return;
    if (state != ncclInProgress) fail(state, std::string(call) + " for");
    std::this_thread::yield();
    if (std::chrono::steady_clock::now() - looked < kLivenessInterval) continue;
    looked = std::chrono::steady_clock::now();
    try {
      host_.check();
    } catch (const std::exception& error) {
      reason_ = error.what();
      end_nccl();
      throw;
    }
  }
}

void NcclCommunicator::execute(kernels::Stream& stream, const Collective& collective,
                               const std::byte* input, std::byte* output,
                               std::span<std::byte> workspace) {
  const std::lock_guard lock(mutex_);
  what_ = describe_into(collective, text_);
  require_alive();
  validate(collective, rank(), size(), levels_.needed() ? levels_.locals() : size());
  const OperandBytes bytes = operand_bytes(collective, rank());
  static_cast<void>(arenas_.locate(input, bytes.input, what_, "input"));
  static_cast<void>(arenas_.locate(output, bytes.output, what_, "output"));
  stream_ = device_.stream_of(stream);
  enqueue(stream, collective, input, output, workspace);
}

void NcclCommunicator::check() {
  host_.check();
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  require_alive();
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl_.comm_get_async_error(comm_, &state);
  if (asked != ncclSuccess) fail(asked, "ncclCommGetAsyncError during");
  if (state != ncclSuccess && state != ncclInProgress) fail(state, "a collective up to");
}

void NcclCommunicator::abort(const std::string& reason, ExitCode code) noexcept {
  host_.abort(reason, code);
  dead_ = true;  // ends a wait that holds the mutex
  const std::lock_guard lock(mutex_);
  if (reason_.empty()) reason_ = attributed(rank(), reason);
  end_nccl();
}

void NcclCommunicator::close() {
  const std::lock_guard lock(mutex_);
  if (closed_ || dead_) return;
  what_ = "close";
  require(nccl_.comm_finalize(comm_), "ncclCommFinalize");
  (void)nccl_.comm_destroy(comm_);
  comm_ = nullptr;
  closed_ = true;
}

}  // namespace strata::comm
