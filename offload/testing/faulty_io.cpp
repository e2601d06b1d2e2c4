#include "offload/testing/faulty_io.h"

#include <algorithm>

#include "offload/nvme/disk_alignment.h"

namespace strata::offload {

bool FaultyIo::strikes(const BlockRequest& request) {
  const int number = ++(request.direction == Direction::read ? reads_ : writes_);
  if (request.direction != fault_.direction || fired_ == fault_.times) return false;
  if (fired_ == 0 && number == fault_.nth) struck_offset_ = request.offset;
  if (request.offset != struck_offset_) return false;
  ++fired_;
  fired_.notify_all();
  return true;
}

void FaultyIo::submit(const BlockRequest& request) {
  if (!strikes(request)) return inner_->submit(request);
  BlockRequest changed = request;
  switch (fault_.kind) {
    case Fault::Kind::error:
      own_.push_back({request.id, -fault_.error_number});
      return;
    case Fault::Kind::short_by:
      shorts_[request.id] = std::max(std::int64_t{0}, request.bytes - fault_.bytes);
      changed.bytes = round_down(shorts_[request.id]);  // devices transfer no part of a sector
      if (changed.bytes == 0)
        own_.push_back({request.id, 0});
      else
        inner_->submit(changed);
      return;
    case Fault::Kind::flip:
      flips_[request.id] = request.memory + request.bytes / 3;
      return inner_->submit(request);
    case Fault::Kind::hold:
      held_.push_back(request);
      return;
  }
}

std::size_t FaultyIo::reap(std::span<BlockCompletion> out) {
  if (released_) {
    for (const BlockRequest& request : held_) inner_->submit(request);
    held_.clear();
  }
  if (!own_.empty()) {
    const std::size_t count = std::min(out.size(), own_.size());
    std::copy_n(own_.begin(), count, out.begin());
    own_.erase(own_.begin(), own_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  const std::size_t count = inner_->reap(out);
  for (BlockCompletion& completion : out.first(count)) {
    if (const auto node = flips_.extract(completion.id)) *node.mapped() ^= std::byte{0x10};
    if (const auto node = shorts_.extract(completion.id)) completion.result = node.mapped();
  }
  return count;
}

}  // namespace strata::offload
