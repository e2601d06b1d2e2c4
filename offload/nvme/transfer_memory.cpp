#include "offload/nvme/transfer_memory.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "offload/nvme/nvme_store.h"

namespace strata::offload {
namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

TransferMemory::TransferMemory(NvmeStore& store, std::int64_t bytes, std::string_view what)
    : store_(store) {
  held_.push_back({AlignedMemory(bytes), std::string(what)});
}

TransferMemory::~TransferMemory() { store_.retire(held_); }

void NvmeStore::retire(HeldMemoryList& held) noexcept {
  const std::span<const std::byte> memory = held.front().memory.bytes();
  std::unique_lock lock(mutex_);
  const Transfer* user = user_of(memory);
  while (user != nullptr && !(user->found_stuck && user->remaining > 0)) {
    const Ticket ticket = user->ticket;
    lock.unlock();
    try {
      wait(ticket);
    } catch (...) {
      // The caller reports an earlier error. A transfer that is stuck is found again.
    }
    lock.lock();
    user = user_of(memory);
  }
  const bool registered = std::ranges::any_of(
      registered_, [&](std::span<const std::byte> range) { return overlap(range, memory); });
  if (user != nullptr || registered) kept_->splice(kept_->end(), held);
}

const Transfer* NvmeStore::user_of(std::span<const std::byte> memory) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const Transfer& transfer = transfers_[i];
    const auto bytes = static_cast<std::size_t>(transfer.bytes);
    if (transfer.in_use && overlap({transfer.memory, bytes}, memory)) return &transfer;
  }
  return nullptr;
}

}  // namespace strata::offload
