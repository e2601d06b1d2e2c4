// Memory for a test's operands, registered with a communicator.
#pragma once

#include <span>

#include "comm/communicator.h"
#include "comm/mapped_file.h"
#include "core/check.h"

namespace strata::comm {

class TestArena {
 public:
  /// Collective: registers the arena.
  TestArena(Communicator& communicator, std::size_t bytes)
      : communicator_(communicator),
        fd_(make_memfd("strata-test-arena", bytes)),
        file_(fd_.get(), bytes, Access::read_write, "test arena") {
    communicator.register_arena(
        {file_.memory().data(), static_cast<std::int64_t>(bytes), fd_.get()});
  }

  /// Returns the next `bytes`, 64-byte aligned.
  std::byte* take(std::int64_t bytes) {
    std::byte* result = file_.memory().data() + used_;
    used_ += (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
    STRATA_CHECK(used_ <= file_.memory().size(), "test arena is too small");
    return result;
  }
  /// Gives all taken bytes back.
  void reset() { used_ = 0; }
  /// Collective: unregisters the arena.
  void close() { communicator_.unregister_arena(file_.memory().data()); }

 private:
  Communicator& communicator_;
  UniqueFd fd_;
  MappedFile file_;
  std::size_t used_ = 0;
};

}  // namespace strata::comm
