#include "offload/nvme/uring_io.h"

#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/system_call.h"

namespace strata::offload {
namespace {

/// Id of the read of wake_event_, to which wake writes.
constexpr std::uint64_t kWakeId = ~std::uint64_t{0};
/// Index of the only registered file.
constexpr int kFileIndex = 0;

class UringIo final : public BlockIo {
 public:
  /// Takes `ring`, which has room for `capacity` requests and one read of `wake_event`.
  UringIo(const io_uring& ring, UniqueFd file, UniqueFd wake_event, int capacity)
      : ring_(ring),
        file_(std::move(file)),
        wake_event_(std::move(wake_event)),
        capacity_(capacity) {
    wait_for_wake();
  }
  ~UringIo() override { io_uring_queue_exit(&ring_); }
  UringIo(const UringIo&) = delete;
  UringIo& operator=(const UringIo&) = delete;

  [[nodiscard]] int capacity() const override { return capacity_; }

  void submit(const BlockRequest& request) override {
    io_uring_sqe* entry = next_entry();
    // Ends at the border of a slice; the rest of a short transfer is submitted again.
    const std::int64_t allowed = std::min(request.bytes, slices_.until_border(request.memory));
    const auto bytes = static_cast<unsigned>(allowed);
    const auto offset = static_cast<std::uint64_t>(request.offset);
    const int buffer = slices_.find(request.memory, allowed);
    const bool read = request.direction == Direction::read;
    if (read && buffer >= 0)
      io_uring_prep_read_fixed(entry, kFileIndex, request.memory, bytes, offset, buffer);
    else if (buffer >= 0)
      io_uring_prep_write_fixed(entry, kFileIndex, request.memory, bytes, offset, buffer);
    else if (read)
      io_uring_prep_read(entry, kFileIndex, request.memory, bytes, offset);
    else
      io_uring_prep_write(entry, kFileIndex, request.memory, bytes, offset);
    entry->flags |= IOSQE_FIXED_FILE;
    entry->user_data = request.id;
  }

  // Ignores errors: reap submits again what was not taken, and reports what is wrong.
  void begin() override { io_uring_submit(&ring_); }

  std::size_t reap(std::span<BlockCompletion> out) override {
    for (;;) {
      // Submits noted requests and waits, in one call.
      const int result = io_uring_submit_and_wait(&ring_, 1);
      if (result >= 0) break;
      STRATA_CHECK(result == -EINTR || result == -EAGAIN || result == -EBUSY,
                   "io_uring_enter:", std::strerror(-result));
      if (io_uring_cq_ready(&ring_) > 0) break;  // reaping them makes room
    }
    std::size_t count = 0;
    io_uring_cqe* completion = nullptr;
    while (count < out.size() && io_uring_peek_cqe(&ring_, &completion) == 0) {
      if (completion->user_data == kWakeId)
        wait_for_wake();
      else
        out[count++] = {completion->user_data, completion->res};
      io_uring_cqe_seen(&ring_, completion);
    }
    return count;
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    // Fails only when the counter is full; then the reader wakes anyway.
    [[maybe_unused]] const ssize_t written = ::write(wake_event_.get(), &one, sizeof(one));
  }

  int register_memory(const MemorySlices& slices) override {
    if (!slices_.slices().empty()) io_uring_unregister_buffers(&ring_);
    slices_ = {};
    if (slices.slices().empty()) return 0;
    std::vector<iovec> buffers;
    for (const MemorySlices::Slice& slice : slices.slices())
      buffers.push_back({slice.data(), slice.size()});
    const int result =
        io_uring_register_buffers(&ring_, buffers.data(), static_cast<unsigned>(buffers.size()));
    if (result == 0) slices_ = slices;
    return -result;
  }

  [[nodiscard]] int file() const override { return file_.get(); }

 private:
  io_uring_sqe* next_entry() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    STRATA_CHECK(entry != nullptr, "more requests than the ring's capacity", capacity_);
    return entry;
  }

  void wait_for_wake() {
    io_uring_sqe* entry = next_entry();
    io_uring_prep_read(entry, wake_event_.get(), &wakes_, sizeof(wakes_), 0);
    entry->user_data = kWakeId;
  }

  io_uring ring_;
  UniqueFd file_;
  UniqueFd wake_event_;
  int capacity_;
  MemorySlices slices_;
  std::uint64_t wakes_ = 0;  // buffer for the read of wake_event_; not used
};

std::string reason_of(int number) {
  const std::string why = std::strerror(number);
  switch (number) {
    case ENOSYS:
      return "this kernel has no io_uring (" + why + ")";
    case EPERM:
      return "io_uring is forbidden here, by kernel.io_uring_disabled or by a container's policy "
             "(" +
             why + ")";
    case ENOMEM:
      return "the limit on locked memory leaves io_uring too little (" + why + "; ulimit -l)";
    default:
      return "io_uring cannot be set up (" + why + ")";
  }
}

}  // namespace

std::unique_ptr<BlockIo> make_uring_io(UniqueFd& file, int capacity, std::string& reason) {
  io_uring ring;
  io_uring_params parameters{};
  // One more entry, for the read of the wake event.
  int result = io_uring_queue_init_params(static_cast<unsigned>(capacity) + 1, &ring, &parameters);
  if (result < 0) {
    reason = reason_of(-result);
    return nullptr;
  }
  // Older kernels register memory only after every request has ended, even the read of the wake
  // event.
  if ((parameters.features & IORING_FEAT_RSRC_TAGS) == 0) {
    io_uring_queue_exit(&ring);
    reason = "io_uring of this kernel is older than Linux 5.13";
    return nullptr;
  }
  const int descriptor = file.get();
  result = io_uring_register_files(&ring, &descriptor, 1);
  if (result < 0) {
    io_uring_queue_exit(&ring);
    reason = reason_of(-result);
    return nullptr;
  }
  UniqueFd wake_event(::eventfd(0, EFD_CLOEXEC));
  if (!wake_event.valid()) {
    io_uring_queue_exit(&ring);
    throw_system_error("eventfd");
  }
  return std::make_unique<UringIo>(ring, std::move(file), std::move(wake_event), capacity);
}

}  // namespace strata::offload
