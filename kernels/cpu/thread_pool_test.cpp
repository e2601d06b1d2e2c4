#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace strata::kernels {
namespace {

TEST(ThreadPool, RunsEachTaskOnceForAnyThreadAndTaskCount) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (std::int64_t tasks : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
      std::atomic<bool> workers_valid{true};
      pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
        ++runs[static_cast<std::size_t>(task)];
        if (worker < 0 || worker >= threads) workers_valid = false;
      });
      for (const auto& count : runs) EXPECT_EQ(count, 1) << threads << " threads, " << tasks;
      EXPECT_TRUE(workers_valid);
    }
  }
}

TEST(ThreadPool, WritesOfTasksAreSeenByTheCallerInManyShortJobs) {
  ThreadPool pool(4);
  std::vector<int> values(5);
  for (int job = 0; job < 20000; ++job) {
    pool.parallel_for(5, [&](std::int64_t task, int) {
      values[static_cast<std::size_t>(task)] = job + static_cast<int>(task);
    });
    for (int i = 0; i < 5; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], job + i);
  }
}

TEST(ThreadPool, SharesOutLongTasksDynamically) {
  ThreadPool pool(2);
  std::atomic<int> short_tasks_elsewhere{0};
  std::atomic<int> long_worker{-1};
  pool.parallel_for(20, [&](std::int64_t task, int worker) {
    if (task == 0) {
      long_worker = worker;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (worker != long_worker) ++short_tasks_elsewhere;
    }
  });
  EXPECT_EQ(short_tasks_elsewhere, 19);
}

TEST(ThreadPool, UsesAllThreads) {
  ThreadPool pool(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the workers sleep
  std::atomic<int> arrived{0};
  // Each task waits for the others, so three threads must run one each.
  pool.parallel_for(3, [&](std::int64_t, int) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(ThreadPool, WaitingSleeps) {
  ThreadPool pool(8);
  pool.parallel_for(8, [](std::int64_t, int) {});
  const double before = process_cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // idle workers
  pool.parallel_for(2, [](std::int64_t task, int) {             // a waiting caller
    if (task == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  EXPECT_LT(process_cpu_seconds() - before, 0.1);
}

TEST(ThreadPoolDeathTest, RefusesNestedUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ThreadPool pool(1);
  EXPECT_DEATH(pool.parallel_for(
                   2, [&](std::int64_t, int) { pool.parallel_for(2, [](std::int64_t, int) {}); }),
               "parallel_for inside parallel_for");
}

}  // namespace
}  // namespace strata::kernels
