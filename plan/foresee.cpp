#include "plan/foresee.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "runtime/simulator/foreseen_times.h"
#include "runtime/simulator/host_resources.h"
#include "runtime/simulator/simulated_ranks.h"

namespace strata::plan {
namespace {

using compile::ProgramKey;
using compile::ProgramKind;
using compile::StepPrograms;
using runtime::HostResource;
using runtime::Queue;
using runtime::RunNumber;

/// Steps after which nobody waits for two that agree.
constexpr int kMostSteps = 8;

/// Names of what collectives wait for.
constexpr std::string_view kNetwork = "network", kRankLinks = "links between ranks";

/// The time that each resource works for a rank, in ns of all of the resource.
using ResourceTimes = std::array<double, runtime::kHostResources>;

/// Adds up what the queues of a rank do.
class WorkCounter final : public runtime::Observer {
 public:
  void begin(const runtime::Program&, int) override {}
  void end(const runtime::Program&, int) override {}
  void executed(const runtime::Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override {
    const runtime::Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
    sum_[static_cast<std::size_t>(in.queue)].busy_seconds[static_cast<std::size_t>(in.pass)] +=
        static_cast<double>(end_ns - begin_ns) * 1e-9;
  }
  void waited(const runtime::Program&, int, Queue on, std::int64_t ns) override {
    sum_[static_cast<std::size_t>(on)].waited_seconds += static_cast<double>(ns) * 1e-9;
  }
  /// Returns what was added up since the last call.
  std::array<QueueForecast, runtime::kQueues> take() { return std::exchange(sum_, {}); }

 private:
  std::array<QueueForecast, runtime::kQueues> sum_{};
};

/// Starts Programs on all ranks as train::Engine does.
class Cycle {
 public:
  Cycle(const SimulatedStep& step, const comm::Mesh& mesh, const ForecastRequest& request)
      : step_(step),
        request_(request),
        world_(mesh, step.ranks_per_host, step.times),
        micro_steps_(zero::micro_steps(step.ranks[0]->settings.plan)),
        handles_(step.ranks.size()),
        used_(step.ranks.size()) {
    world_.rank(0).add_observer(counter_);
    for (runtime::Observer* observer : request.observers) world_.rank(0).add_observer(*observer);
  }

  Forecast run() {
    Forecast forecast;
    forecast_steps(forecast);
    if (request_.snapshot && has(ProgramKind::snapshot)) {
      const std::int64_t begin = settle();
      start_step(ProgramKind::snapshot);
      forecast.snapshot_step_seconds = seconds_since(begin);
    }
    if (request_.drain && has(ProgramKind::drain)) {
      const RunNumber last = last_run_;
      start({ProgramKind::drain});
      settle();
      forecast.drain_seconds = 1e-9 * static_cast<double>(ended_ns(last_run_) - ended_ns(last));
    }
    if (request_.evaluate && has(ProgramKind::evaluate)) {
      const std::int64_t begin = settle();
      start({ProgramKind::evaluate});
      forecast.evaluate_seconds = seconds_since(begin);
    }
    settle();  // observers then have whole steps
    return forecast;
  }

 private:
  [[nodiscard]] int ranks() const { return world_.ranks(); }
  [[nodiscard]] bool has(ProgramKind kind) const { return step_.ranks[0]->find(kind) != nullptr; }
  /// Returns when a run had ended on all ranks.
  [[nodiscard]] std::int64_t ended_ns(RunNumber run) {
    std::int64_t ns = 0;
    for (int r = 0; r < ranks(); ++r) ns = std::max(ns, world_.rank(r).ended_ns(run));
    return ns;
  }
  std::int64_t settle() {
    for (int r = 0; r < ranks(); ++r) world_.rank(r).wait_all();
    return world_.now_ns();
  }
  double seconds_since(std::int64_t begin_ns) {
    return static_cast<double>(settle() - begin_ns) * 1e-9;
  }

  void forecast_steps(Forecast& forecast) {
    std::int64_t end = 0, took = 0;
    for (int i = 0; i <= kMostSteps; ++i) {
      const auto before = std::exchange(under_way_, start_step(ProgramKind::train));
      if (!before) continue;
      for (int r = 0; r < ranks(); ++r) world_.rank(r).wait(*before);
      forecast.queues = counter_.take();
      const std::int64_t now = ended_ns(*before);
      const std::int64_t last = std::exchange(took, now - std::exchange(end, now));
      find_bound(forecast, std::exchange(used_, std::vector<ResourceTimes>(used_.size())));
      // The work of a step is counted where it is started: steady where steps are.
      if (i >= 2 && std::abs(took - last) <= took / 100'000) break;
    }
    forecast.step_seconds = static_cast<double>(took) * 1e-9;
    forecast.bound_part /= std::max<double>(1, static_cast<double>(took));
  }

  /// Leaves in bound_part how long the fullest resource works, ns.
  void find_bound(Forecast& forecast, const std::vector<ResourceTimes>& used) const {
    const auto busy_ns = [&](Queue queue) {
      return 1e9 * forecast.queues[static_cast<std::size_t>(queue)].all_busy_seconds();
    };
    forecast.bound_by = "compute";
    forecast.bound_part = busy_ns(Queue::compute);
    const auto consider = [&](std::string_view name, double ns) {
      if (ns < forecast.bound_part) return;
      forecast.bound_part = ns;
      forecast.bound_by = name;
    };
    double network_ns = 0;
    for (const HostResource resource : runtime::kAllHostResources) {
      const bool is_network = resource == HostResource::nic_out || resource == HostResource::nic_in;
      const auto at = static_cast<std::size_t>(resource);
      double of_host = 0;
      for (int r = 0; r < ranks(); ++r) {
        const bool of_rank = static_cast<int>(resource) >= runtime::kFirstOfRank;
        if (of_rank || r % step_.ranks_per_host == 0) of_host = 0;
        of_host += used[static_cast<std::size_t>(r)][at];
        consider(is_network ? kNetwork : name_of(resource), of_host);
        if (is_network) network_ns = std::max(network_ns, of_host);
      }
    }
    // Links between ranks are no resource of a host: collectives alone use them. What the network
    // takes less than half of is the time of a host's own links.
    const double exchanging_ns = busy_ns(Queue::communication);
    consider(2 * network_ns > exchanging_ns ? kNetwork : kRankLinks, exchanging_ns);
  }

  /// Starts a step whose Programs are of `kind` where there are such; returns its last run.
  RunNumber start_step(ProgramKind kind) {
    if (has(ProgramKind::read_ahead) && !is_read_ahead_) start({ProgramKind::read_ahead});
    for (const zero::MicroStep& micro_step : micro_steps_) {
      const ProgramKey key{kind, micro_step.kind};
      start(step_.ranks[0]->programs.contains(key)
                ? key
                : ProgramKey{ProgramKind::train, key.micro_step});
    }
    is_read_ahead_ = true;
    ++number_;
    return last_run_;
  }

  void start(const ProgramKey& key) {
    RunNumber run = -1;
    for (int r = 0; r < ranks(); ++r) {
      runtime::SimulatedRank& rank = world_.rank(r);
      if (last_run_ >= 0) rank.wait_inputs_read(last_run_);
      const Loaded& loaded = load(r, key);
      run = rank.start(loaded.handle, number_);
      for (std::size_t i = 0; i < loaded.used.size(); ++i)
        used_[static_cast<std::size_t>(r)][i] += loaded.used[i];
    }
    last_run_ = run;
  }

  struct Loaded {
    int handle = -1;
    ResourceTimes used{};
  };

  /// Programs are loaded when they run first: most kinds are never asked for.
  const Loaded& load(int rank, const ProgramKey& key) {
    const auto r = static_cast<std::size_t>(rank);
    const auto [at, fresh] = handles_[r].try_emplace(key);
    if (!fresh) return at->second;
    const runtime::Program& program = step_.ranks[r]->programs.at(key);
    at->second.handle = world_.rank(rank).borrow(program);
    const runtime::InstructionTimes& times = *step_.times[step_.times.size() == 1 ? 0 : r];
    for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
      const runtime::InstructionWork work = times.work_of(program, i);
      for (const runtime::ResourceShare& share : work.shares)
        at->second.used[static_cast<std::size_t>(share.resource)] +=
            share.share * static_cast<double>(work.alone_ns);
    }
    return at->second;
  }

  const SimulatedStep& step_;
  const ForecastRequest& request_;
  WorkCounter counter_;
  runtime::SimulatedRanks world_;
  std::vector<zero::MicroStep> micro_steps_;
  std::vector<std::map<ProgramKey, Loaded>> handles_;  // by rank
  std::vector<ResourceTimes> used_;                    // by rank, of what was started
  std::optional<RunNumber> under_way_;                 // the last run of the step before
  RunNumber last_run_ = -1;
  bool is_read_ahead_ = false;
  std::int64_t number_ = 0;
};

}  // namespace

double QueueForecast::all_busy_seconds() const {
  return std::accumulate(busy_seconds.begin(), busy_seconds.end(), 0.0);
}

Forecast foresee(const SimulatedStep& step, const ForecastRequest& request) {
  const comm::Mesh& mesh = step.ranks.at(0)->settings.plan.mesh;
  STRATA_CHECK(static_cast<int>(step.ranks.size()) == mesh.ranks(), step.ranks.size());
  return Cycle(step, mesh, request).run();
}

Forecast foresee(const StepPrograms& programs, const machine::Machine& machine,
                 const ForecastRequest& request) {
  const runtime::ForeseenTimes times(machine);
  const SimulatedStep alone{{&programs}, {&times}};
  return Cycle(alone, comm::data_mesh(1), request).run();
}

}  // namespace strata::plan
