#include "comm/testing/arrivals.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "core/error.h"
#include "core/system_call.h"

namespace strata::comm {

struct Arrivals::Count {
  std::atomic<int> ranks{0};
};

Arrivals::Arrivals() {
  void* memory =
      ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_system_error("mapping memory that ranks share");
  count_ = new (memory) Count;
}

void Arrivals::meet(int world) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  count_->ranks.fetch_add(1);
  while (count_->ranks.load() < world) {
    if (std::chrono::steady_clock::now() > end) throw PeerError("a rank of the test has not come");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace strata::comm
