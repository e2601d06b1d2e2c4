// Runs a block of a CUDA grid on the CPU. Its threads are fibers of the calling thread. Each runs
// until it synchronizes with others; between two synchronizations every order of threads is legal,
// and the stream's ThreadOrder chooses one.
//
// These errors end the process with a message that names the kernel, block and thread:
//   - a barrier that some threads of the block do not reach, since they returned or wait elsewhere
//   - a warp function that the 32 lanes do not call together, or with different constant arguments
//   - a packed access that is not aligned to its size, an asynchronous copy not aligned to 16 bytes
//   - an asynchronous copy for which its thread did not wait before it returned
//   - more threads, shared memory or blocks than any device grants
//   - two threads that access one byte of shared memory without synchronization (shared_races.h)
// Shared memory is exactly as large as asked for, so AddressSanitizer finds accesses outside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"

namespace strata::cuda::host {

enum class WarpOperation : std::uint8_t {
  none,
  barrier,
  shuffle_xor,
  shuffle_from,
  ballot,
  load_matrix,
  multiply,
};

using WarpWords = std::array<std::uint64_t, kWarp>;

class Block;
class SharedRaces;

/// One simulated thread.
class Thread {
 public:
  int index = 0;

  [[nodiscard]] Block& block() const { return *block_; }
  /// Copies `bytes` from `from`, or zeros if it is null, when the copy is waited for.
  void copy_async(void* to, const void* from, std::size_t bytes);
  void commit_copies();
  void wait_copies(int groups_left);

 private:
  friend class Block;
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  Block* block_ = nullptr;
  std::vector<Copy> open_;                ///< copies that are not committed yet
  std::deque<std::vector<Copy>> groups_;  ///< copies that are committed and have not arrived
};

/// Returns the thread that runs now.
Thread& self();

struct GridLaunch {
  const char* name;
  LaunchShape shape;
  int threads;
};

class Block {
 public:
  Block(const GridLaunch& launch, ThreadOrder order);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Runs all threads of block `index` to their end.
  void run(Index3 index, void (*body)(const void*), const void* arguments);

  [[nodiscard]] Index3 index() const { return index_; }
  [[nodiscard]] Index3 grid() const;
  [[nodiscard]] std::byte* shared_memory() { return shared_.get(); }

  // The running thread calls these.
  void sync_block();
  /// Gives one word to the warp and returns all 32, lane by lane.
  WarpWords exchange(WarpOperation operation, int argument, std::uint64_t word);
  /// Gives an address to the warp and returns the 16 bytes at each lane's address, read at once.
  std::array<std::array<std::byte, 16>, kWarp> read_rows(std::uint64_t address, int argument);
  /// Ends the process with a message that names the kernel, the block and the running thread.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  friend Thread& self();
  friend class Thread;
  struct Fibers;
  struct WarpState;
  void leave_thread();  // returns to the scheduler until this thread may go on
  void finish_thread();
  static void enter(unsigned high, unsigned low);

  const GridLaunch& launch_;
  ThreadOrder order_;
  Index3 index_;
  std::vector<Thread> threads_;
  struct SharedDelete {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{128}); }
  };
  std::unique_ptr<std::byte[], SharedDelete> shared_;
  std::unique_ptr<SharedRaces> races_;
  std::unique_ptr<Fibers> fibers_;
  std::vector<WarpState> warps_;
  int barrier_arrived_ = 0;
  std::uint64_t barrier_round_ = 0;
  void (*body_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
};

/// Runs all blocks of the grid, one after another.
void run_grid(SimulatedStream& stream, const GridLaunch& launch, void (*body)(const void*),
              const void* arguments);

void check_alignment(const void* address, std::size_t bytes);
void load_matrix4(std::uint32_t (&r)[4], const void* row, bool transposed);
enum class HalfKind : std::uint8_t { bf16, f16 };
void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
              HalfKind kind);

}  // namespace strata::cuda::host
