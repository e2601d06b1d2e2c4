#include "runtime/simulator/simulated_ranks.h"

#include <fmt/core.h>
#include <algorithm>
#include <queue>
#include <tuple>

#include "core/check.h"
#include "core/error.h"
#include "runtime/execute/bound_instruction.h"
#include "runtime/simulator/host_resources.h"
#include "runtime/simulator/meetings.h"
#include "runtime/simulator/simulated_host.h"

namespace strata::runtime {

class SimulatedWorld {
 public:
  SimulatedWorld(const comm::Mesh& mesh, int ranks_per_host,
                 std::vector<const InstructionTimes*> times)
      : ranks_per_host_(ranks_per_host), times_(std::move(times)), meetings_(mesh) {
    const int ranks = mesh.ranks();
    STRATA_CHECK(ranks_per_host > 0, ranks_per_host);
    STRATA_CHECK(times_.size() == 1 || std::ssize(times_) == ranks, times_.size(), ranks);
    for (int r = 0; r < ranks; ++r) ranks_.push_back(std::make_unique<SimulatedRank>(*this, r));
    const int of_ranks = (kHostResources - kFirstOfRank) * ranks_per_host;
    for (int h = 0; h * ranks_per_host < ranks; ++h) hosts_.emplace_back(kFirstOfRank + of_ranks);
    stamps_.resize(hosts_.size(), 0);
    is_changed_.resize(hosts_.size(), false);
  }

  SimulatedRank& rank(int rank) { return *ranks_.at(static_cast<std::size_t>(rank)); }
  [[nodiscard]] int ranks() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }

  /// Returns an instruction's work with the resources of its rank numbered on its host.
  [[nodiscard]] InstructionWork work_of(int rank, const Program& program, int instruction) const {
    const auto of = times_.size() == 1 ? 0 : static_cast<std::size_t>(rank);
    InstructionWork work = times_[of]->work_of(program, instruction);
    STRATA_CHECK(work.alone_ns > 0, work.alone_ns, instruction);
    constexpr int kOwn = kHostResources - kFirstOfRank;
    for (ResourceShare& share : work.shares)
      if (share.resource >= kFirstOfRank) share.resource += rank % ranks_per_host_ * kOwn;
    return work;
  }

  /// Begins what can begin on a rank.
  void proceed(int rank) {
    begun_.clear();
    RankQueues& queues = queues_of(rank);
    queues.proceed(now_ns_, begun_);
    for (const Queue queue : begun_) {
      if (const auto& collective = queues.running(queue).collective)
        meet(rank, *collective);
      else
        run(rank, queue);
    }
  }

  /// Goes on to the next time at which something ends.
  void advance() {
    find_ends();
    while (!ends_.empty() && is_stale(ends_.top())) ends_.pop();
    if (ends_.empty()) stand_still();
    now_ns_ = ends_.top().ns;
    touched_.clear();
    for (; !ends_.empty() && ends_.top().ns == now_ns_; ends_.pop())
      if (!is_stale(ends_.top())) end_on(ends_.top().host);
    std::ranges::sort(touched_);
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const int rank : touched_) proceed(rank);
  }

 private:
  /// The next time to look at a host, if its stamp is still the same.
  struct End {
    std::int64_t ns;
    int host;
    std::int64_t stamp;
    bool operator>(const End& other) const {
      return std::tie(ns, host, stamp) > std::tie(other.ns, other.host, other.stamp);
    }
  };

  RankQueues& queues_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]->queues_; }
  [[nodiscard]] int slot_of(int rank, Queue queue) const {
    return rank % ranks_per_host_ * kQueues + static_cast<int>(queue);
  }
  [[nodiscard]] bool is_stale(const End& end) const {
    return end.stamp != stamps_[static_cast<std::size_t>(end.host)];
  }

  void run(int rank, Queue queue) {
    const int host = rank / ranks_per_host_;
    hosts_[static_cast<std::size_t>(host)].start(slot_of(rank, queue), queues_of(rank).work(queue),
                                                 now_ns_);
    note_change(host);
  }

  void meet(int rank, const comm::Collective& collective) {
    if (!meetings_.arrive(rank, collective.axes)) return;
    for (const int other : meetings_.ranks(rank, collective.axes)) {
      const Instruction& of_other = queues_of(other).running(Queue::communication);
      if (of_other.collective->kind != collective.kind)
        throw InternalError(fmt::format(
            "rank {} came to '{}' and rank {} to '{}', which are different collectives", rank,
            queues_of(rank).running(Queue::communication).label, other, of_other.label));
      run(other, Queue::communication);
    }
  }

  void note_change(int host) {
    if (is_changed_[static_cast<std::size_t>(host)]) return;
    is_changed_[static_cast<std::size_t>(host)] = true;
    changed_.push_back(host);
  }

  /// Finds the next ends on hosts on which something else runs now.
  void find_ends() {
    for (const int host : changed_) {
      const auto h = static_cast<std::size_t>(host);
      is_changed_[h] = false;
      ++stamps_[h];
      if (const std::int64_t next = hosts_[h].next_end_ns(); next != kNever)
        ends_.push({next, host, stamps_[h]});
    }
    changed_.clear();
  }

  void end_on(int host) {
    ended_.clear();
    hosts_[static_cast<std::size_t>(host)].advance(now_ns_, ended_);
    note_change(host);
    for (const int slot : ended_) {
      const int rank = host * ranks_per_host_ + slot / kQueues;
      const auto queue = static_cast<Queue>(slot % kQueues);
      const auto& collective = queues_of(rank).running(queue).collective;
      if (collective && !times_[0]->ranks_leave_alone()) {
        if (!meetings_.end_part(rank, collective->axes)) continue;
        for (const int other : meetings_.ranks(rank, collective->axes)) end(other, queue);
      } else {
        end(rank, queue);
      }
    }
  }

  void end(int rank, Queue queue) {
    queues_of(rank).end(queue, now_ns_);
    touched_.push_back(rank);
  }

  [[noreturn]] void stand_still() {
    constexpr int kMost = 16;  // ranks that are named
    std::string text = fmt::format("the simulation stands still at {} ns", now_ns_);
    for (int rank = 0; rank < std::min(ranks(), kMost); ++rank) {
      std::vector<std::string> all = queues_of(rank).waits();
      if (queues_of(rank).is_busy(Queue::communication)) all.push_back(missing_at(rank));
      if (all.empty()) all.emplace_back("nothing is started");
      text += fmt::format("; rank {}", rank);
      for (std::size_t i = 0; i < all.size(); ++i) text += (i == 0 ? ": " : ", ") + all[i];
    }
    if (ranks() > kMost) text += fmt::format("; and {} ranks more", ranks() - kMost);
    throw InternalError(text);
  }

  [[nodiscard]] std::string missing_at(int rank) {
    const Instruction& in = queues_of(rank).running(Queue::communication);
    std::string missing;
    for (const int other : meetings_.ranks(rank, in.collective->axes))
      if (!queues_of(other).is_busy(Queue::communication))
        missing += fmt::format("{}{}", missing.empty() ? " " : " and ", other);
    return std::string(name_of(Queue::communication)) + ": '" + in.label + "' waits for rank" +
           missing;
  }

  int ranks_per_host_;
  std::vector<const InstructionTimes*> times_;
  std::int64_t now_ns_ = 0;
  std::vector<std::unique_ptr<SimulatedRank>> ranks_;
  std::vector<SimulatedHost> hosts_;
  Meetings meetings_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<std::int64_t> stamps_;  // per host
  std::vector<bool> is_changed_;      // per host
  std::vector<int> changed_;          // hosts
  std::vector<int> ended_;            // slots of one host
  std::vector<int> touched_;          // ranks
  std::vector<Queue> begun_;
};

int SimulatedRank::load(Program program) {
  owned_.push_back(std::make_unique<Program>(std::move(program)));
  return borrow(*owned_.back());
}

int SimulatedRank::borrow(const Program& program) {
  auto loaded = std::make_unique<SimulatedProgram>();
  loaded->program = &program;
  loaded->inputs_read.fill(-1);
  loaded->work.reserve(program.instructions.size());
  for (std::int32_t i = 0; i < std::ssize(program.instructions); ++i) {
    const Instruction& in = program.instructions[static_cast<std::size_t>(i)];
    const auto queue = static_cast<std::size_t>(in.queue);
    loaded->work.push_back(world_.work_of(rank_, program, i));
    loaded->queues[queue].push_back(i);
    if (reads_staged_input(program, in)) loaded->inputs_read[queue] = i;
  }
  loaded_.push_back(std::move(loaded));
  return static_cast<int>(loaded_.size()) - 1;
}

const Program& SimulatedRank::program(int handle) const {
  return *loaded_.at(static_cast<std::size_t>(handle))->program;
}

RunNumber SimulatedRank::start(int handle, std::int64_t step) {
  while (queues_.started() - queues_.finished() >= RankQueues::kInFlight) world_.advance();
  const RunNumber run = queues_.start(*loaded_.at(static_cast<std::size_t>(handle)), step);
  world_.proceed(rank_);
  return run;
}

bool SimulatedRank::takes_another() const {
  return queues_.started() - queues_.finished() < RankQueues::kInFlight &&
         (queues_.started() == 0 || queues_.has_read_inputs(queues_.started() - 1));
}

void SimulatedRank::wait_inputs_read(RunNumber run) {
  STRATA_CHECK(run < queues_.started(), run, queues_.started());
  while (!queues_.has_read_inputs(run)) world_.advance();
}

void SimulatedRank::wait(RunNumber run) {
  STRATA_CHECK(run < queues_.started(), run, queues_.started());
  while (queues_.finished() <= run) world_.advance();
}

void SimulatedRank::wait_all() {
  while (queues_.finished() < queues_.started()) world_.advance();
}

SimulatedRanks::SimulatedRanks(const comm::Mesh& mesh, int ranks_per_host,
                               std::vector<const InstructionTimes*> times)
    : world_(std::make_unique<SimulatedWorld>(mesh, ranks_per_host, std::move(times))) {}
SimulatedRanks::~SimulatedRanks() = default;

int SimulatedRanks::ranks() const { return world_->ranks(); }
SimulatedRank& SimulatedRanks::rank(int rank) { return world_->rank(rank); }
std::int64_t SimulatedRanks::now_ns() const { return world_->now_ns(); }
void SimulatedRanks::advance() { world_->advance(); }

}  // namespace strata::runtime
