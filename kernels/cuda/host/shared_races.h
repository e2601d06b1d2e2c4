// Finds races in a simulated block's shared memory: two threads that touch one byte, at least one
// writing, with neither a sync_block between them nor, in one warp, a sync_warp. Shuffles, ballots
// and products of a warp order no memory, on hardware or here.
//
// Accesses are seen where the compiler marks them: what is compiled with -fsanitize=thread calls
// the functions at the end of shared_races.cpp, which stand in for ThreadSanitizer's own. Under a
// real sanitizer nothing is marked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::cuda::host {

class Block;

class SharedRaces {
 public:
  /// Watches a block of `threads` threads; ends the process by block.fail().
  SharedRaces(const Block& block, int threads);

  /// A new block of the grid begins, with this shared memory.
  void begin_block(const std::byte* memory, std::size_t bytes);
  /// All threads of the block, or of one warp, have arrived; none of them runs.
  void passed_block_barrier() { ++round_; }
  void passed_warp_barrier(int warp) { ++warp_rounds_[static_cast<std::size_t>(warp)]; }

  /// Counts what follows as accesses of `thread`, also marked ones of this host thread.
  void watch(int thread);
  static void watch_none();

  /// What lies outside of shared memory is left alone.
  void read(const void* address, std::size_t bytes);
  void write(const void* address, std::size_t bytes);

 private:
  /// The last access of a kind to some bytes of a word; several threads of one warp, or of several
  /// warps, may have read the same ones in one round. Where threads touch different bytes of a word
  /// the later one is remembered: a race may be missed, none is made up.
  struct Access {
    enum class Who : std::uint8_t { one, lanes, warps };
    std::uint32_t round = 0;
    std::uint32_t warp_round = 0;
    std::uint16_t thread = 0;
    Who who = Who::one;
    std::uint8_t bytes = 0;  ///< a bit each
  };
  struct Word {
    Access written, read;
  };

  /// Calls visit(word, bytes of it) where the access is to shared memory.
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
  Access now_;               ///< of the thread that runs
  std::uint32_t round_ = 1;  ///< block barriers so far, over all blocks of the grid
  std::vector<std::uint32_t> warp_rounds_;
};

}  // namespace strata::cuda::host
