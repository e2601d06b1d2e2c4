#include "kernels/cuda/testing/simulated/simulated_device.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cuda/cuda_kernels.h"

namespace strata::cuda {
namespace {

using kernels::EventUse;
using kernels::MemoryKind;
using Work = std::function<void()>;

constexpr std::align_val_t kAlignment{4096};  // that of pages, like pinned memory

class HostMemory final : public kernels::Memory {
 public:
  HostMemory(MemoryKind kind, std::int64_t bytes, std::shared_ptr<std::int64_t> free_bytes)
      : bytes_(bytes), free_bytes_(std::move(free_bytes)), counts_(kind == MemoryKind::device) {
    if (counts_ && bytes > *free_bytes_)
      throw OutOfMemory("device", static_cast<std::uint64_t>(bytes),
                        static_cast<std::uint64_t>(*free_bytes_), "use a smaller micro-batch");
    if (counts_) *free_bytes_ -= bytes;
    base_.reset(
        static_cast<std::byte*>(::operator new[](static_cast<std::size_t>(bytes), kAlignment)));
    std::memset(base_.get(), 0xFF, static_cast<std::size_t>(bytes));
  }
  ~HostMemory() override {
    if (counts_) *free_bytes_ += bytes_;
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  [[nodiscard]] std::byte* base() const override { return base_.get(); }
  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }

 private:
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }
  };
  std::unique_ptr<std::byte[], Delete> base_;
  std::int64_t bytes_;
  std::shared_ptr<std::int64_t> free_bytes_;
  bool counts_;
};

/// The number of times an event was recorded and reached. Its records are reached in order.
struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t recorded = 0;
  std::int64_t reached = 0;
  std::chrono::steady_clock::time_point when;

  /// Notifies under the lock, because a waiting thread may destroy this object once it is free.
  void reach(std::int64_t number) {
    const std::lock_guard lock(mutex);
    reached = std::max(reached, number);
    when = std::chrono::steady_clock::now();
    changed.notify_all();
  }
  void wait_for(std::int64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= number; });
  }
  std::int64_t count_record() {
    const std::lock_guard lock(mutex);
    return ++recorded;
  }
  std::int64_t count() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
};

/// A node of a recording: its work, and the earlier nodes that must run before it.
struct Node {
  Work work;  ///< empty if the node only joins others
  std::vector<int> after;
};

/// A recording under way, of its origin and the streams that were forked from it.
struct Capture {
  std::vector<Node> nodes;
  std::map<const void*, int> last;              ///< the last node of each stream
  std::map<const EventState*, int> event_node;  ///< the node that reaches each event
};

class QueuedStream final : public SimulatedStream {
 public:
  QueuedStream(ThreadOrder order, std::uint64_t delays)
      : SimulatedStream(order), delays_(delays), thread_([this] { serve(); }) {}
  ~QueuedStream() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  QueuedStream(const QueuedStream&) = delete;
  QueuedStream& operator=(const QueuedStream&) = delete;

  void enqueue(Work work) override {
    if (capture) {
      add_node(std::move(work));
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    wake_.notify_all();
  }

  /// Adds a node that runs after the stream's last one, and returns its index.
  int add_node(Work work) {
    Node node{std::move(work), {}};
    if (const auto last = capture->last.find(this); last != capture->last.end())
      node.after.push_back(last->second);
    capture->nodes.push_back(std::move(node));
    const int index = static_cast<int>(capture->nodes.size()) - 1;
    capture->last[this] = index;
    return index;
  }

  /// Set while this stream is recorded. Only the thread that enqueues uses it.
  std::shared_ptr<Capture> capture;

 private:
  void serve() {
    while (true) {
      Work work;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || !work_.empty(); });
        if (work_.empty()) return;
        work = std::move(work_.front());
        work_.pop_front();
      }
      if (delays_ != 0) delay();
      work();
    }
  }

  void delay() {
    delays_ = delays_ * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t microseconds = (delays_ >> 33) % 300;
    if (microseconds > 100) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }

  std::uint64_t delays_;  ///< state of the random numbers, which only thread_ uses; 0: no delays
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> work_;
  bool stopping_ = false;
  std::thread thread_;
};

class SimulatedEvent final : public kernels::Event {
 public:
  explicit SimulatedEvent(EventUse made_for) : use(made_for) {}
  EventUse use;
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
  /// The recording in which the event was recorded last, if it was not recorded outside since.
  std::weak_ptr<Capture> capture;
};

class SimulatedRecording final : public kernels::Recording {
 public:
  explicit SimulatedRecording(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}

  /// Runs the nodes, each time in another order that the dependencies allow.
  void run() {
    std::vector<int> missing(nodes_.size());
    std::vector<std::vector<int>> followers(nodes_.size());
    std::vector<int> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      missing[i] = static_cast<int>(nodes_[i].after.size());
      for (int before : nodes_[i].after)
        followers[static_cast<std::size_t>(before)].push_back(static_cast<int>(i));
      if (missing[i] == 0) ready.push_back(static_cast<int>(i));
    }
    while (!ready.empty()) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      std::swap(ready[(random_ >> 33) % ready.size()], ready.back());
      const auto next = static_cast<std::size_t>(ready.back());
      ready.pop_back();
      if (nodes_[next].work) nodes_[next].work();
      for (int follower : followers[next])
        if (--missing[static_cast<std::size_t>(follower)] == 0) ready.push_back(follower);
    }
  }

 private:
  std::vector<Node> nodes_;
  std::uint64_t random_ = 1;
};

QueuedStream& queued(kernels::Stream& stream) { return static_cast<QueuedStream&>(stream); }

SimulatedEvent& simulated(kernels::Event& event) { return static_cast<SimulatedEvent&>(event); }
const SimulatedEvent& simulated(const kernels::Event& event) {
  return static_cast<const SimulatedEvent&>(event);
}

}  // namespace

SimulatedDevice::SimulatedDevice(ThreadOrder order, std::int64_t memory_bytes, std::uint64_t delays)
    : order_(order),
      free_bytes_(std::make_shared<std::int64_t>(memory_bytes)),
      memory_bytes_(memory_bytes),
      delays_(delays) {}

SimulatedDevice::~SimulatedDevice() = default;

kernels::DeviceCapabilities SimulatedDevice::capabilities() const {
  kernels::DeviceCapabilities capabilities;
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  return capabilities;
}

kernels::DeviceMemoryFacts SimulatedDevice::memory() const { return {*free_bytes_, memory_bytes_}; }

const kernels::KernelTable& SimulatedDevice::kernels() const { return cuda_kernels(); }

std::unique_ptr<kernels::Memory> SimulatedDevice::allocate(MemoryKind kind, std::int64_t bytes) {
  STRATA_CHECK(bytes > 0, bytes);
  return std::make_unique<HostMemory>(kind, bytes, free_bytes_);
}

std::unique_ptr<kernels::Stream> SimulatedDevice::make_stream() {
  if (delays_ != 0) delays_ += 0x9E3779B97F4A7C15ull;  // a seed of its own for each stream
  return std::make_unique<QueuedStream>(order_, delays_);
}

std::unique_ptr<kernels::Event> SimulatedDevice::make_event(EventUse use) {
  return std::make_unique<SimulatedEvent>(use);
}

void SimulatedDevice::record(kernels::Stream& stream, kernels::Event& event) {
  QueuedStream& on = queued(stream);
  SimulatedEvent& what = simulated(event);
  const auto state = what.state;
  if (!on.capture) {
    what.capture.reset();
    on.enqueue([state, number = state->count_record()] { state->reach(number); });
    return;
  }
  STRATA_CHECK(what.use == EventUse::order, "inside a recording only streams wait for events");
  on.capture->event_node[state.get()] = on.add_node({});
  what.capture = on.capture;
}

void SimulatedDevice::wait(kernels::Stream& stream, const kernels::Event& event) {
  QueuedStream& on = queued(stream);
  const SimulatedEvent& what = simulated(event);
  if (const auto capture = what.capture.lock()) {
    STRATA_CHECK(!on.capture || on.capture == capture, "a stream of two recordings");
    on.capture = capture;
    const int before = capture->event_node.at(what.state.get());
    const int node = on.add_node({});
    capture->nodes[static_cast<std::size_t>(node)].after.push_back(before);
    return;
  }
  STRATA_CHECK(!on.capture, "a recorded stream waits for an event from outside the recording");
  on.enqueue([state = what.state, number = what.state->count()] { state->wait_for(number); });
}

bool SimulatedDevice::reached(const kernels::Event& event) {
  EventState& state = *simulated(event).state;
  const std::lock_guard lock(state.mutex);
  return state.reached >= state.recorded;
}

void SimulatedDevice::wait_on_host(const kernels::Event& event) {
  const SimulatedEvent& what = simulated(event);
  STRATA_CHECK(what.use != EventUse::order, "the host waits for an event made for streams");
  what.state->wait_for(what.state->count());
}

double SimulatedDevice::milliseconds(const kernels::Event& from, const kernels::Event& to) {
  return std::chrono::duration<double, std::milli>(simulated(to).state->when -
                                                   simulated(from).state->when)
      .count();
}

void SimulatedDevice::copy(kernels::Stream& stream, void* to, const void* from,
                           std::int64_t bytes) {
  queued(stream).enqueue([=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
}

void SimulatedDevice::mark(kernels::Stream& stream, std::uint32_t* word, std::uint32_t value) {
  queued(stream).enqueue(
      [=] { std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release); });
}

void SimulatedDevice::copy_now(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void SimulatedDevice::clear_now(void* memory, std::int64_t bytes) {
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

void SimulatedDevice::synchronize(kernels::Stream& stream) {
  QueuedStream& on = queued(stream);
  STRATA_CHECK(!on.capture, "the host waits for a recorded stream");
  EventState done;
  on.enqueue([&done, number = done.count_record()] { done.reach(number); });
  done.wait_for(1);
}

void SimulatedDevice::begin_recording(kernels::Stream& origin) {
  QueuedStream& on = queued(origin);
  STRATA_CHECK(!on.capture, "a recording inside a recording");
  on.capture = std::make_shared<Capture>();
}

std::unique_ptr<kernels::Recording> SimulatedDevice::end_recording(kernels::Stream& origin) {
  const auto capture = queued(origin).capture;
  STRATA_CHECK(capture != nullptr, "no recording was begun on this stream");
  // All nodes must come before the origin's last node.
  std::set<int> covered;
  std::vector<int> open;
  if (const auto last = capture->last.find(&queued(origin)); last != capture->last.end())
    open.push_back(last->second);
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (!covered.insert(node).second) continue;
    for (int before : capture->nodes[static_cast<std::size_t>(node)].after) open.push_back(before);
  }
  STRATA_CHECK(covered.size() == capture->nodes.size(), "a recorded stream was not joined",
               covered.size(), capture->nodes.size());
  for (const auto& [stream, last] : capture->last)
    static_cast<QueuedStream*>(const_cast<void*>(stream))->capture.reset();
  queued(origin).capture.reset();
  return std::make_unique<SimulatedRecording>(std::move(capture->nodes));
}

void SimulatedDevice::abandon_recording(kernels::Stream& origin) noexcept {
  const auto capture = queued(origin).capture;
  if (!capture) return;
  for (const auto& [stream, last] : capture->last)
    static_cast<QueuedStream*>(const_cast<void*>(stream))->capture.reset();
  queued(origin).capture.reset();
}

void SimulatedDevice::replay(kernels::Stream& stream, kernels::Recording& recording) {
  ++replays_;
  queued(stream).enqueue([what = &static_cast<SimulatedRecording&>(recording)] { what->run(); });
}

}  // namespace strata::cuda
