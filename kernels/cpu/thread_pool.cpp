#include "kernels/cpu/thread_pool.h"

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "core/check.h"

namespace strata::kernels {

using Body = std::function<void(std::int64_t task, int worker)>;

/// One word holds the job's number and how many of its tasks nobody has claimed yet. A claim is a
/// compare-and-swap on that word, so a worker that missed a job can neither claim a task of the
/// next one with stale data nor keep the caller waiting: parallel_for returns when the tasks are
/// done, whoever has woken up by then.
struct ThreadPool::State {
  std::atomic<std::uint64_t> unclaimed{0};  ///< job number in the upper half
  std::atomic<std::uint32_t> job{0};        ///< what sleeping workers wait on
  std::atomic<std::uint32_t> pending{0};    ///< tasks not yet done; what the caller waits on
  std::atomic<bool> stop{false};
  std::atomic<bool> running{false};
  /// Written before `unclaimed` announces the job; read only by threads that hold a claim on it.
  const Body* body = nullptr;
  std::uint32_t tasks = 0;
  void (*prepare)() = nullptr;
  std::vector<std::thread> workers;

  /// Claims and runs tasks until none is left.
  void work(int worker) {
    std::uint64_t word = unclaimed.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(word) > 0) {
      // A failed exchange makes `word` current again.
      if (!unclaimed.compare_exchange_weak(word, word - 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
        continue;
      (*body)(tasks - static_cast<std::uint32_t>(word), worker);
      if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) pending.notify_one();
      word = unclaimed.load(std::memory_order_acquire);
    }
  }

  void serve(int worker) {
    if (prepare != nullptr) prepare();
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) pending.notify_one();
    std::uint32_t seen = 0;
    while (true) {
      // wait() sleeps on a futex after a few yields: eight ranks may share two cores.
      job.wait(seen, std::memory_order_acquire);
      seen = job.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_acquire)) return;
      work(worker);
    }
  }

  /// Lets the caller wait until `pending` is 0.
  void wait_until_done() {
    for (std::uint32_t left; (left = pending.load(std::memory_order_acquire)) != 0;)
      pending.wait(left, std::memory_order_acquire);
  }

  void shut_down() noexcept {
    stop.store(true, std::memory_order_release);
    job.fetch_add(1, std::memory_order_release);
    job.notify_all();
    for (std::thread& thread : workers) thread.join();
  }
};

ThreadPool::ThreadPool(int threads, void (*prepare)()) : state_(std::make_unique<State>()) {
  STRATA_CHECK(threads >= 1, threads);
  state_->prepare = prepare;
  state_->pending.store(static_cast<std::uint32_t>(threads - 1));
  state_->workers.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int worker = 1; worker < threads; ++worker)
      state_->workers.emplace_back([state = state_.get(), worker] { state->serve(worker); });
  } catch (...) {
    state_->shut_down();
    throw;
  }
  state_->wait_until_done();
}

ThreadPool::~ThreadPool() {
  STRATA_CHECK(!state_->running.load());
  state_->shut_down();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::run(std::int64_t tasks, const Body& body) {
  if (tasks <= 0) return;
  State& state = *state_;
  STRATA_CHECK(!state.running.exchange(true), "parallel_for inside parallel_for");
  if (tasks == 1 || state.workers.empty()) {
    for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
  } else {
    STRATA_CHECK(tasks <= std::numeric_limits<std::uint32_t>::max(), tasks);
    const auto count = static_cast<std::uint32_t>(tasks);
    state.body = &body;
    state.tasks = count;
    state.pending.store(count, std::memory_order_relaxed);
    const std::uint32_t number = state.job.load(std::memory_order_relaxed) + 1;
    state.unclaimed.store(std::uint64_t{number} << 32 | count, std::memory_order_release);
    state.job.store(number, std::memory_order_release);
    state.job.notify_all();
    state.work(0);
    state.wait_until_done();
  }
  state.running.store(false);
}

}  // namespace strata::kernels
