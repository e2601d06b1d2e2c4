// Finds races in the shared memory of a simulated block: two threads that access one byte, at least
// one of them writing, without a sync_block or (in one warp) a sync_warp between the accesses.
// Shuffles, ballots and products of a warp order no memory, on hardware or here.
//
// Only accesses that the compiler marks are seen: code compiled with -fsanitize=thread calls the
// functions at the end of shared_races.cpp, which take the place of ThreadSanitizer's. Under a real
// sanitizer nothing is marked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::cuda::host {

class Block;

class SharedRaces {
 public:
  /// Watches a block of `threads` threads. A race ends the process by block.fail().
  SharedRaces(const Block& block, int threads);

  /// Tells that the next block of the grid begins, with this shared memory.
  void begin_block(const std::byte* memory, std::size_t bytes);
  /// Tells that all threads of the block, or of one warp, have arrived at a barrier.
  void passed_block_barrier() { ++round_; }
  void passed_warp_barrier(int warp) { ++warp_rounds_[static_cast<std::size_t>(warp)]; }

  /// Takes accesses from now on, also marked ones of this host thread, as those of `thread`.
  void watch(int thread);
  static void watch_none();

  /// Checks and remembers an access. Addresses outside shared memory are ignored.
  void read(const void* address, std::size_t bytes);
  void write(const void* address, std::size_t bytes);

 private:
  /// The last access of a kind to some bytes of a word. The reads of several lanes or warps in one
  /// round are remembered as one (`who`). If threads access different bytes of a word, only the
  /// later access is remembered, so a race may be missed, but none is made up.
  struct Access {
    enum class Who : std::uint8_t { one, lanes, warps };
    std::uint32_t round = 0;
    std::uint32_t warp_round = 0;
    std::uint16_t thread = 0;
    Who who = Who::one;
    std::uint8_t bytes = 0;  ///< a bit for each byte of the word
  };
  struct Word {
    Access written, read;
  };

  /// Calls visit(word, bit mask of its bytes) for each word of shared memory that is accessed.
  template <typename Visit>
  void each_word(const void* address, std::size_t bytes, const Visit& visit);
  [[nodiscard]] bool is_ordered(const Access& before, const Access& now) const;
  void check(const Access& before, const char* verb_before, const Access& now, const char* verb,
             std::size_t word) const {
    if (!is_ordered(before, now)) report(before, verb_before, now, verb, word);
  }
  [[noreturn]] void report(const Access& before, const char* verb_before, const Access& now,
                           const char* verb, std::size_t word) const;

  const Block& block_;
  const std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<Word> words_;
  Access now_;               ///< accesses of the running thread look like this
  std::uint32_t round_ = 1;  ///< barriers and starts of blocks so far, over the whole grid
  std::vector<std::uint32_t> warp_rounds_;
};

}  // namespace strata::cuda::host
