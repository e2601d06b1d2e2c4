#include "runtime/disk_transfers.h"

#include <algorithm>
#include <exception>

#include "core/check.h"

namespace strata::runtime {

void DiskTransfers::start(std::int32_t instruction, const DiskTransfer& transfer,
                          std::string_view what) {
  STRATA_CHECK(disk_ != nullptr && !full(), what);
  const auto begin = std::chrono::steady_clock::now();
  const Disk::Ticket ticket =
      transfer.write ? disk_->start_write(transfer.offset, transfer.memory, what)
                     : disk_->start_read(transfer.offset, transfer.memory, what);
  under_way_.push_back({instruction, ticket, begin});
}

void DiskTransfers::skip(std::int32_t instruction) {
  under_way_.push_back({instruction, kNone, std::chrono::steady_clock::now()});
}

DiskTransfers::Finished DiskTransfers::finish_first() {
  const UnderWay first = under_way_.front();
  under_way_.pop_front();
  if (first.ticket != kNone) disk_->wait(first.ticket);
  // Shown as if they ran one after another, which is how the disk is shared out.
  const auto begin = std::max(first.begin, last_end_);
  last_end_ = std::max(begin, std::chrono::steady_clock::now());
  return {first.instruction, begin, last_end_};
}

void DiskTransfers::reap() noexcept {
  while (!under_way_.empty()) try {
      finish_first();
    } catch (const std::exception&) {
      // Whoever reaps has an earlier error to report.
    }
}

}  // namespace strata::runtime
