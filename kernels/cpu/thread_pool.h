// A fixed set of sleeping worker threads that share out numbered tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace strata::kernels {

/// Timing decides which worker runs which task, but results may not depend on it: tasks write
/// disjoint memory, and the cut of work into tasks does not show in the bits. Idle workers sleep on
/// a futex. One parallel_for at a time per pool.
class ThreadPool {
 public:
  /// `threads` >= 1 counts the calling thread, so 1 starts no thread. When the constructor returns,
  /// each thread that it started has called `prepare`: what a library sets up (and allocates) per
  /// thread would otherwise happen at a worker's first task, whenever that comes.
  explicit ThreadPool(int threads, void (*prepare)() = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const;
  /// Runs body(task, worker) for task in [0, tasks), worker in [0, threads()), and returns when all
  /// are done. The body must not throw. Allocates nothing.
  template <typename Body>
  void parallel_for(std::int64_t tasks, const Body& body) {
    run(tasks, std::cref(body));
  }

 private:
  void run(std::int64_t tasks, const std::function<void(std::int64_t task, int worker)>& body);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata::kernels
