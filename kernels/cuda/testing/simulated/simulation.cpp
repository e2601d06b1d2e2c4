#include "kernels/cuda/testing/simulated/simulation.h"

#include <fmt/core.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/check.h"
#include "kernels/cuda/testing/simulated/shared_races.h"
#include "kernels/math/float16.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define STRATA_ASAN 1
#else
#define STRATA_ASAN 0
#endif
// Sanitizers do not follow longjmp from stack to stack.
#if STRATA_ASAN || defined(__SANITIZE_THREAD__)
#define STRATA_FOLLOWED_SWITCH 1
#else
#define STRATA_FOLLOWED_SWITCH 0
#endif

namespace strata::cuda::host {
namespace {

/// A stack, and the place in its code at which it was left.
struct Context {
  ucontext_t entry{};
  jmp_buf place{};
  bool entered = false;
};

/// Continues `to` where it was left; returns when `from` is continued. The ucontext only serves to
/// enter a stack: swapcontext makes two system calls, which took most of a simulation's time.
void switch_stack(Context& from, Context& to) {
#if STRATA_FOLLOWED_SWITCH
  ::swapcontext(&from.entry, &to.entry);
#else
  if (_setjmp(from.place) != 0) return;
  if (to.entered) _longjmp(to.place, 1);
  to.entered = true;
  ::setcontext(&to.entry);
#endif
}

/// The parts of one lane in the operands and the result of a product.
struct Fragments {
  const std::uint32_t* a;
  const std::uint32_t* b;
  float* d;
};

/// Adds a * b to d for the whole warp. `words` are the addresses of the lanes' Fragments.
void multiply_warp(const WarpWords& words, HalfKind kind) {
  const auto of_lane = [&](std::size_t lane) -> const Fragments& {
    return *reinterpret_cast<const Fragments*>(words[lane]);
  };
  const auto number = [&](std::uint32_t word, std::size_t half) {
    const auto bits = static_cast<std::uint16_t>(word >> (16 * half));
    return static_cast<double>(kind == HalfKind::bf16 ? kernels::bf16_to_f32(bits)
                                                      : kernels::f16_to_f32(bits));
  };
  double a[16][16], b[8][16];  // a[row][k], b[column][k]
  for (std::size_t lane = 0; lane < kWarp; ++lane)
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t major = lane / 4, k = lane % 4 * 2 + half;
      for (std::size_t i = 0; i < 4; ++i)
        a[major + i % 2 * 8][k + i / 2 * 8] = number(of_lane(lane).a[i], half);
      for (std::size_t i = 0; i < 2; ++i) b[major][k + i * 8] = number(of_lane(lane).b[i], half);
    }
  for (std::size_t lane = 0; lane < kWarp; ++lane)
    for (std::size_t i = 0; i < 4; ++i) {
      const double* row = a[lane / 4 + i / 2 * 8];
      const double* column = b[lane % 4 * 2 + i % 2];
      double sum = of_lane(lane).d[i];
      for (std::size_t k = 0; k < 16; ++k) sum += row[k] * column[k];
      of_lane(lane).d[i] = static_cast<float>(sum);
    }
}

constexpr std::size_t kStackBytes = STRATA_ASAN ? 256 << 10 : 64 << 10;

/// Makes `entry` call `function` with the halves of `argument` on `stack`. It is a function of its
/// own because getcontext, which may return twice, should not be called in a loop.
void make_entry(ucontext_t& entry, std::byte* stack, void (*function)(), const void* argument) {
  ::getcontext(&entry);
  entry.uc_stack.ss_sp = stack;
  entry.uc_stack.ss_size = kStackBytes;
  entry.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uint64_t>(argument);
  ::makecontext(&entry, function, 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
}

constexpr std::size_t kRowBytes = 16;  ///< bytes of a matrix row that load_matrix reads
constexpr int kMostThreads = 1024;
constexpr std::uint32_t kMostBlocksX = 0x7FFFFFFF, kMostBlocksYZ = 65535;

// Each host thread simulates threads of its own, so each has its own running one.
thread_local Thread* running = nullptr;

const char* name_of(WarpOperation operation) {
  constexpr const char* kNames[] = {"nothing", "sync_warp",    "shuffle_xor", "shuffle_from",
                                    "ballot",  "load_matrix4", "mma"};
  return kNames[static_cast<int>(operation)];
}

}  // namespace

Thread& self() {
  STRATA_CHECK(running != nullptr, "device code outside a launch");
  return *running;
}

void Thread::copy_async(void* to, const void* from, std::size_t bytes) {
  check_alignment(to, bytes);
  if (from != nullptr) check_alignment(from, bytes);
  // The copy may arrive at any time until it was waited for, so it counts as a write already.
  block_->races_->write(to, bytes);
  open_.push_back({to, from, bytes});
}

void Thread::commit_copies() {
  groups_.push_back(std::move(open_));
  open_.clear();
}

void Thread::wait_copies(int groups_left) {
  for (; static_cast<int>(groups_.size()) > groups_left; groups_.pop_front())
    for (const Copy& copy : groups_.front()) {
      block_->races_->write(copy.to, copy.bytes);
      if (copy.from != nullptr)
        std::memcpy(copy.to, copy.from, copy.bytes);
      else
        std::memset(copy.to, 0, copy.bytes);
    }
}

/// The exchanges of the lanes of a warp. Two rounds are kept: a lane may enter the next exchange
/// while others still read this one, but not the one after.
struct Block::WarpState {
  struct Round {
    WarpOperation operation = WarpOperation::none;
    int argument = 0;
    int arrived = 0;
    WarpWords words{};
    std::array<std::array<std::byte, 16>, kWarp> rows{};  ///< load_matrix: bytes at the addresses
  };
  std::array<Round, 2> rounds;
  std::uint64_t complete = 0;  ///< exchanges that all lanes have entered
  std::array<std::uint64_t, kWarp> entered{};
};

struct Block::Fibers {
  struct Fiber {
    Context context;
    std::unique_ptr<std::byte[]> stack;
    void* fake_stack = nullptr;
    bool finished = false;
    enum class Wait : std::uint8_t { none, block, warp } wait = Wait::none;
    std::uint64_t wait_round = 0;
  };
  std::vector<Fiber> all;
  Context scheduler{.entered = true};
  void* scheduler_fake_stack = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;
};

Block::Block(const GridLaunch& launch, ThreadOrder order)
    : launch_(launch),
      order_(order),
      threads_(static_cast<std::size_t>(launch.threads)),
      races_(std::make_unique<SharedRaces>(*this, launch.threads)),
      fibers_(std::make_unique<Fibers>()),
      warps_(static_cast<std::size_t>(launch.threads / kWarp)) {
  fibers_->all.resize(threads_.size());
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].index = static_cast<int>(i);
    threads_[i].block_ = this;
    Fibers::Fiber& fiber = fibers_->all[i];
    fiber.stack.reset(new std::byte[kStackBytes]);
    make_entry(fiber.context.entry, fiber.stack.get(), reinterpret_cast<void (*)()>(&Block::enter),
               this);
  }
}

Block::~Block() = default;

Index3 Block::grid() const { return launch_.shape.grid; }

void Block::fail(const std::string& what) const {
  std::fprintf(stderr, "%s\n  block (%u, %u, %u), thread %d: %s\n", launch_.name, index_.x,
               index_.y, index_.z, running == nullptr ? -1 : running->index, what.c_str());
  std::abort();
}

void Block::enter(unsigned high, unsigned low) {
  auto* block = reinterpret_cast<Block*>(std::uint64_t{high} << 32 | low);
#if STRATA_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &block->fibers_->scheduler_stack,
                                  &block->fibers_->scheduler_stack_bytes);
#endif
  for (;;) {  // once for each block of the grid
    block->body_(block->arguments_);
    block->finish_thread();
  }
}

void Block::finish_thread() {
  if (!running->groups_.empty() || !running->open_.empty())
    fail("returned without waiting for its asynchronous copies");
  Fibers::Fiber& fiber = fibers_->all[static_cast<std::size_t>(running->index)];
  fiber.finished = true;
  leave_thread();
}

void Block::leave_thread() {
  Fibers::Fiber& fiber = fibers_->all[static_cast<std::size_t>(running->index)];
#if STRATA_ASAN
  __sanitizer_start_switch_fiber(&fiber.fake_stack, fibers_->scheduler_stack,
                                 fibers_->scheduler_stack_bytes);
#endif
  switch_stack(fiber.context, fibers_->scheduler);
#if STRATA_ASAN
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &fibers_->scheduler_stack,
                                  &fibers_->scheduler_stack_bytes);
#endif
}

void Block::run(Index3 index, void (*body)(const void*), const void* arguments) {
  index_ = index;
  body_ = body;
  arguments_ = arguments;
  barrier_arrived_ = 0;
  barrier_round_ = 0;
  for (WarpState& warp : warps_) warp = WarpState{};
  // Each block gets a fresh allocation, so it cannot use what another block left in shared memory.
  const auto bytes = static_cast<std::size_t>(launch_.shape.shared_bytes);
  shared_.reset(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{128})));
  std::memset(shared_.get(), 0xFF, bytes);
  races_->begin_block(shared_.get(), bytes);

  for (Fibers::Fiber& fiber : fibers_->all) {
    fiber.finished = false;
    fiber.wait = Fibers::Fiber::Wait::none;
  }

  std::vector<std::size_t> order(threads_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order_ == ThreadOrder::backward) std::reverse(order.begin(), order.end());
  std::uint64_t random = 0x9E3779B97F4A7C15u;
  const auto may_run = [&](const Fibers::Fiber& fiber, std::size_t thread) {
    if (fiber.finished) return false;
    if (fiber.wait == Fibers::Fiber::Wait::block) return barrier_round_ > fiber.wait_round;
    if (fiber.wait == Fibers::Fiber::Wait::warp)
      return warps_[thread / kWarp].complete > fiber.wait_round;
    return true;
  };
  std::size_t finished = 0;
  while (finished < threads_.size()) {
    if (order_ == ThreadOrder::shuffled)
      for (std::size_t i = order.size(); i > 1; --i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        std::swap(order[i - 1], order[(random >> 33) % i]);
      }
    bool progress = false;
    for (std::size_t thread : order) {
      Fibers::Fiber& fiber = fibers_->all[thread];
      if (!may_run(fiber, thread)) continue;
      progress = true;
      fiber.wait = Fibers::Fiber::Wait::none;
      running = &threads_[thread];
      races_->watch(running->index);
#if STRATA_ASAN
      __sanitizer_start_switch_fiber(&fibers_->scheduler_fake_stack, fiber.stack.get(),
                                     kStackBytes);
#endif
      switch_stack(fibers_->scheduler, fiber.context);
#if STRATA_ASAN
      __sanitizer_finish_switch_fiber(fibers_->scheduler_fake_stack, nullptr, nullptr);
#endif
      running = nullptr;
      SharedRaces::watch_none();
      if (fiber.finished) ++finished;
    }
    if (progress) continue;
    const auto waiting = [&](Fibers::Fiber::Wait wait) {
      return std::count_if(fibers_->all.begin(), fibers_->all.end(),
                           [&](const Fibers::Fiber& f) { return !f.finished && f.wait == wait; });
    };
    fail(fmt::format(
        "{} threads wait at sync_block, {} at a function of their warp, {} have "
        "returned: nobody can go on",
        waiting(Fibers::Fiber::Wait::block), waiting(Fibers::Fiber::Wait::warp), finished));
  }
}

void Block::sync_block() {
  Fibers::Fiber& fiber = fibers_->all[static_cast<std::size_t>(running->index)];
  fiber.wait = Fibers::Fiber::Wait::block;
  fiber.wait_round = barrier_round_;
  if (++barrier_arrived_ == static_cast<int>(threads_.size())) {
    barrier_arrived_ = 0;
    ++barrier_round_;
    races_->passed_block_barrier();
  }
  leave_thread();  // even the last to arrive, so that the order chooses who runs next
}

WarpWords Block::exchange(WarpOperation operation, int argument, std::uint64_t word) {
  const auto thread = static_cast<std::size_t>(running->index);
  WarpState& warp = warps_[thread / kWarp];
  const std::size_t lane = thread % kWarp;
  const std::uint64_t number = warp.entered[lane]++;
  WarpState::Round& round = warp.rounds[number % 2];
  if (round.arrived == kWarp) round = WarpState::Round{};
  if (round.arrived == 0) {
    round.operation = operation;
    round.argument = argument;
  } else if (round.operation != operation || round.argument != argument) {
    fail(fmt::format("calls {} ({}) where another lane of its warp calls {} ({})",
                     name_of(operation), argument, name_of(round.operation), round.argument));
  }
  round.words[lane] = word;
  Fibers::Fiber& fiber = fibers_->all[thread];
  fiber.wait = Fibers::Fiber::Wait::warp;
  fiber.wait_round = number;
  if (++round.arrived == kWarp) {
    // The last lane to arrive acts for all: no lane goes on before rows are read, products made.
    if (operation == WarpOperation::load_matrix)
      for (std::size_t i = 0; i < kWarp; ++i)
        std::memcpy(round.rows[i].data(), reinterpret_cast<const void*>(round.words[i]), 16);
    if (operation == WarpOperation::multiply)
      multiply_warp(round.words, static_cast<HalfKind>(argument));
    if (operation == WarpOperation::barrier)
      races_->passed_warp_barrier(static_cast<int>(thread / kWarp));
    warp.complete = number + 1;
  }
  leave_thread();
  return round.words;
}

std::array<std::array<std::byte, 16>, kWarp> Block::read_rows(std::uint64_t address, int argument) {
  races_->read(reinterpret_cast<const void*>(address), kRowBytes);
  exchange(WarpOperation::load_matrix, argument, address);
  const auto thread = static_cast<std::size_t>(running->index);
  const WarpState& warp = warps_[thread / kWarp];
  return warp.rounds[(warp.entered[thread % kWarp] - 1) % 2].rows;
}

void run_grid(SimulatedStream& stream, const GridLaunch& launch, void (*body)(const void*),
              const void* arguments) {
  const Index3 grid = launch.shape.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  STRATA_CHECK(launch.threads > 0 && launch.threads <= kMostThreads && launch.threads % kWarp == 0,
               launch.name, launch.threads);
  STRATA_CHECK(grid.x <= kMostBlocksX && grid.y <= kMostBlocksYZ && grid.z <= kMostBlocksYZ,
               launch.name, grid.x, grid.y, grid.z);
  STRATA_CHECK(launch.shape.shared_bytes >= 0 && launch.shape.shared_bytes <= kSharedBytesMost,
               launch.name, launch.shape.shared_bytes);
  stream.saw_shared_bytes(launch.shape.shared_bytes);
  Block block(launch, stream.order());
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t at = stream.order() == ThreadOrder::backward ? blocks - 1 - i : i;
    block.run(
        {static_cast<std::uint32_t>(at % grid.x), static_cast<std::uint32_t>(at / grid.x % grid.y),
         static_cast<std::uint32_t>(at / grid.x / grid.y)},
        body, arguments);
  }
}

void check_alignment(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
    self().block().fail("access of " + std::to_string(bytes) + " bytes is not aligned to them");
}

void load_matrix4(std::uint32_t (&r)[4], const void* row, bool transposed) {
  check_alignment(row, 16);
  Block& block = self().block();
  const auto lane = static_cast<std::size_t>(self().index % kWarp);
  const auto rows = block.read_rows(reinterpret_cast<std::uint64_t>(row), transposed ? 1 : 0);
  for (std::size_t matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t pair[2];
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t major = lane / 4, minor = lane % 4 * 2 + half;
      const std::size_t at_row = transposed ? minor : major, at_column = transposed ? major : minor;
      std::memcpy(&pair[half], rows[matrix * 8 + at_row].data() + at_column * 2, 2);
    }
    r[matrix] = pair[0] | std::uint32_t{pair[1]} << 16;
  }
}

void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
              HalfKind kind) {
  const Fragments mine{a, b, d};
  self().block().exchange(WarpOperation::multiply, static_cast<int>(kind),
                          reinterpret_cast<std::uint64_t>(&mine));
}

}  // namespace strata::cuda::host
