#include "runtime/testing/random_problem.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace strata::runtime {
namespace {

enum QueueNumber : int { kCompute, kHost, kCommunication, kUpload, kDownload, kDisk, kQueueCount };
enum TierNumber : int { kDevice, kPinned, kAhead };

void sort_once(std::vector<int>& tasks) {
  std::sort(tasks.begin(), tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
}

class ProblemMaker {
 public:
  ProblemMaker(std::mt19937_64& random, const RandomProblemSize& size)
      : random_(random), size_(size), values_(static_cast<std::size_t>(1 + size.work / 2)) {}

  ScheduleProblem run() {
    problem_.queues = kQueueCount;
    problem_.resources = size_.shares ? 2 : 0;
    problem_.tiers = {{"device", std::int64_t{1} << 40, 64, false, true},
                      {"pinned", std::int64_t{1} << 40, 64, false, false}};
    if (size_.soft) problem_.tiers.push_back({"ahead", 0, 1, true, false});
    for (Copy& value : values_) {
      value.bytes = 1 + below(1000);
      value.hops = 1 + below(2);
    }
    for (int w = 0; w < size_.work; ++w) add_work();
    if (size_.windows) add_windows();
    return std::move(problem_);
  }

 private:
  /// The latest copy of a value whose home is elsewhere.
  struct Copy {
    int buffer = -1;
    std::int64_t bytes = 0;
    int hops = 1;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <typename Element>
  Element& any_of(std::vector<Element>& elements) {
    return elements[static_cast<std::size_t>(below(static_cast<int>(elements.size())))];
  }

  int add(TaskKind kind, int queue, std::vector<int> after) {
    ScheduleTask task;
    task.kind = kind;
    task.queue = queue;
    task.cost_ns = 10 + below(100);
    task.after = std::move(after);
    if (size_.shares)
      for (int r = 0; r < problem_.resources; ++r)
        if (below(2) == 0) task.shares.push_back({r, 0.1 + 0.1 * below(10)});
    problem_.tasks.push_back(task);
    return static_cast<int>(problem_.tasks.size()) - 1;
  }

  int buffer(int tier, std::int64_t bytes, std::vector<int> users) {
    sort_once(users);
    problem_.buffers.push_back({tier, bytes, std::move(users)});
    return static_cast<int>(problem_.buffers.size()) - 1;
  }

  void add_work() {
    std::vector<int> after, copies, filled_by;
    if (!work_.empty() && below(3) > 0) after.push_back(work_.back());
    if (!work_.empty() && below(3) == 0) after.push_back(any_of(work_));
    sort_once(after);
    for (int count = below(3); count > 0; --count) {
      Copy& value = any_of(values_);
      if (std::find(copies.begin(), copies.end(), value.buffer) != copies.end()) continue;
      filled_by.push_back(bring(value));
      copies.push_back(value.buffer);
    }
    after.insert(after.end(), filled_by.begin(), filled_by.end());
    const int task = add(TaskKind::work, below(4) == 0 ? kHost : kCompute, after);
    for (int copy : copies) problem_.buffers[copy].users.push_back(task);
    if (size_.soft)
      for (int in : filled_by)
        if (below(2) == 0) buffer(kAhead, 1 + below(10), {in, task});
    if (below(2) == 0) buffer(kDevice, 1 + below(500), {task});  // workspace
    if (below(2) == 0) take_away(task);
    if (!work_.empty() && below(2) == 0) {  // one work task leaves something for another
      const int from = any_of(work_);
      problem_.tasks[task].after.push_back(from);
      std::sort(problem_.tasks[task].after.begin(), problem_.tasks[task].after.end());
      buffer(kDevice, 1 + below(300), {from, task});
    }
    work_.push_back(task);
  }

  /// Adds a new copy on the device; returns the task that fills it.
  int bring(Copy& value) {
    std::vector<int> ins;
    if (value.hops == 2) {
      ins.push_back(add(TaskKind::in, kDisk, {}));
      ins.push_back(add(TaskKind::in, kUpload, {ins[0]}));
      buffer(kPinned, value.bytes, ins);
    } else {
      ins.push_back(add(TaskKind::in, kCommunication, {}));
      problem_.tasks.back().ordered = size_.ordered;
    }
    const int copy = buffer(kDevice, value.bytes, {ins.back()});
    if (value.buffer >= 0 && size_.gaps) problem_.gaps.push_back({value.buffer, copy, ins});
    value.buffer = copy;
    return ins.back();
  }

  /// Adds a result that goes home.
  void take_away(int task) {
    const int down = add(TaskKind::out, kDownload, {task});
    const std::int64_t bytes = 1 + below(500);
    buffer(kDevice, bytes, {task, down});
    if (below(2) == 0) {
      const int away = add(TaskKind::out, kDisk, {down});
      buffer(kPinned, bytes, {down, away});
    } else if (size_.ordered && below(2) == 0) {
      problem_.tasks[down].queue = kCommunication;
      problem_.tasks[down].ordered = true;
    }
  }

  void add_windows() {
    std::int64_t place = 0;
    for (int count = 1 + below(3); count > 0; --count) {
      const std::int64_t bytes = 1 + below(600);
      const int user = any_of(work_);
      const int home = add(TaskKind::out, kDisk, {user});
      const auto window = [&](std::vector<int> users) -> ScheduleBuffer& {
        ScheduleBuffer& made =
            problem_.buffers[static_cast<std::size_t>(buffer(kPinned, bytes, std::move(users)))];
        made.place_bytes = place;
        return made;
      };
      window({user, home}).filled_before = true;
      window({add(TaskKind::in, kDisk, {home})}).kept = true;
      place += (bytes + 63) / 64 * 64;
    }
  }

  std::mt19937_64& random_;
  const RandomProblemSize& size_;
  ScheduleProblem problem_;
  std::vector<Copy> values_;
  std::vector<int> work_;
};

}  // namespace

ScheduleProblem random_problem(std::mt19937_64& random, const RandomProblemSize& size) {
  return ProblemMaker(random, size).run();
}

}  // namespace strata::runtime
