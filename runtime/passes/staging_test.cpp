// Checks that inputs may be written while the step before runs, and that results stay for reading.
#include "runtime/passes/staging.h"

#include <gtest/gtest.h>

#include <atomic>

#include "kernels/cpu/cpu_stream.h"
#include "runtime/execute/executor.h"
#include "runtime/program/lower.h"
#include "runtime/program/verifier.h"

namespace strata::runtime {
namespace {

constexpr std::int64_t kElements = 64;
const kernels::TensorType kType{DType::f32, kernels::Shape{kElements}};

Value persistent(std::string name, Role role) {
  Value value;
  value.name = std::move(name);
  value.type = kType;
  value.storage = Storage::persistent;
  value.role = role;
  return value;
}

/// Makes a Graph that computes sum += x.
Graph summing() {
  Graph graph;
  graph.blocks.push_back("sum");
  const ValueId x = graph.add_value(persistent("x", Role::input));
  const ValueId sum = graph.add_value(persistent("sum", Role::gradient));
  graph.add_value(persistent("unread", Role::input));
  graph.apply_into("accumulate", {sum, x}, {graph.next_version(sum)}, {}, 0, Pass::forward, "add");
  stage_inputs(graph);
  stage_output(graph, "sum");
  return graph;
}

/// Holds a Program at one instruction until it is told to go on.
class Gate final : public Observer {
 public:
  explicit Gate(std::string label) : label_(std::move(label)) {}
  void begin(const Program& program, int instruction) override {
    if (program.instructions[static_cast<std::size_t>(instruction)].label != label_) return;
    reached.store(true);
    reached.notify_all();
    open_.wait(false);
  }
  void end(const Program&, int) override {}
  void open() {
    open_.store(true);
    open_.notify_all();
  }
  std::atomic<bool> reached{false};

 private:
  std::string label_;
  std::atomic<bool> open_{false};
};

class Rank {
 public:
  explicit Rank(Observer* observer) {
    Graph graph = summing();
    layout_.add_all(graph);
    Program program = lower(std::move(graph), layout_, {"sum"});
    EXPECT_EQ(verify(program), std::vector<std::string>{});
    ExecutorParts parts;
    for (Tier tier : {Tier::device, Tier::pinned}) {
      const int t = static_cast<int>(tier);
      arenas_[t] =
          Arena(std::string(name_of(tier)), program.arena_bytes[t], ArenaKind::private_memory);
      parts.arenas[t] = &arenas_[t];
    }
    if (observer != nullptr) parts.observers.push_back(observer);
    executor_ =
        make_cpu_executor(std::move(parts), kernels::cpu_kernels(), compute_, communication_);
    handle_ = executor_->load(std::move(program));
  }

  [[nodiscard]] std::span<float> values(const std::string& name) const {
    const PersistentValue& value = layout_.find(name);
    return {
        reinterpret_cast<float*>(arenas_[static_cast<int>(value.tier)].base() + value.offset_bytes),
        static_cast<std::size_t>(kElements)};
  }
  void write(float x) const { std::ranges::fill(values(host_name("x")), x); }
  RunNumber start() { return executor_->start(handle_, 0); }
  Executor& executor() { return *executor_; }
  [[nodiscard]] const PersistentLayout& layout() const { return layout_; }

 private:
  kernels::CpuDevice device_{1};
  kernels::CpuStream compute_{device_}, communication_{device_};
  PersistentLayout layout_;
  std::array<Arena, kTiers> arenas_;
  std::unique_ptr<Executor> executor_;
  int handle_ = 0;
};

TEST(Staging, NextInputsMayBeWrittenWhileTheProgramRuns) {
  Gate gate("add");
  Rank rank(&gate);
  rank.write(1);
  const RunNumber first = rank.start();
  rank.executor().wait_inputs_read(first);  // returns although the Program waits at the gate
  rank.write(10);
  const RunNumber second = rank.start();
  gate.reached.wait(false);
  gate.open();
  rank.executor().wait_inputs_read(second);
  rank.write(100);
  rank.start();
  rank.executor().wait_all();
  EXPECT_EQ(rank.values(host_name("sum"))[kElements - 1], 111);
}

TEST(Staging, OneRunCanBeWaitedForWhileTheNextIsHeld) {
  class SecondAtGate final : public Observer {
   public:
    void begin_program(const Program&, std::int64_t) override {
      if (runs_++ == 1) open.wait(false);
    }
    void begin(const Program&, int) override {}
    void end(const Program&, int) override {}
    std::atomic<bool> open{false};

   private:
    int runs_ = 0;
  } gate;
  Rank rank(&gate);
  rank.write(2);
  const RunNumber first = rank.start();
  rank.executor().wait_inputs_read(first);
  rank.start();
  rank.executor().wait(first);
  EXPECT_EQ(rank.values(host_name("sum"))[0], 2);
  gate.open.store(true);
  gate.open.notify_all();
  rank.executor().wait_all();
  EXPECT_EQ(rank.values(host_name("sum"))[0], 4);
}

TEST(Staging, CopiesBelongToABlockOfTheGraph) {
  const Graph graph = summing();
  ASSERT_EQ(graph.nodes.size(), 3U);  // copy in, add, copy out
  for (const Node& node : graph.nodes)
    EXPECT_LT(static_cast<std::size_t>(node.block), graph.blocks.size()) << node.label;
}

TEST(Staging, InputsThatNobodyReadsHaveOnlyAHostSide) {
  const Rank rank(nullptr);
  EXPECT_TRUE(rank.layout().has(host_name("unread")));
  EXPECT_FALSE(rank.layout().has("unread"));
  EXPECT_EQ(rank.layout().find(host_name("x")).tier, Tier::pinned);
  EXPECT_FALSE(rank.layout().has("x"));  // transient: copied in by every Program
}

}  // namespace
}  // namespace strata::runtime
