#include "plan/chain_of_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "plan/unscheduled.h"
#include "runtime/chain/chain_rate.h"
#include "runtime/passes/autodiff.h"

namespace strata::plan {
namespace {

using runtime::ChainChoice;
using runtime::ChainOption;
using runtime::SavedAction;

/// The link is never taken for slower than this share of its rate, however busy it is.
constexpr double kLeastShare = 0.1;

std::int64_t chain_rate(double rate, double used_share) {
  if (rate <= 0) return 0;
  const double left = rate * std::max(kLeastShare, 1 - used_share);
  return std::clamp<std::int64_t>(std::llround(left), runtime::ChainRate::kSlowestBytesPerS,
                                  runtime::ChainRate::kFastestBytesPerS);
}

/// The memory and time that a way of recomputing takes in a layer, beyond those of keeping all.
struct WayUse {
  std::int64_t recompute_ns = 0;
  std::int64_t backward_bytes = 0;  ///< of working set
  std::int64_t forward_bytes = 0;   ///< 0 or less
};

void choose(runtime::SavedChoices& choices, const SavedLayer& layer, const SavedWay& way) {
  for (std::size_t g = 0; g < way.size(); ++g)
    for (const runtime::ValueId root : layer.groups[g].roots) choices.choose(root, way[g]);
}

/// Layers that save the same.
struct LayerClass {
  std::vector<std::size_t> layers;  ///< indices of ModelChain::layers
  std::vector<SavedWay> ways;       ///< of recomputing
  std::vector<WayUse> uses;         ///< one for each of them
};

/// Bytes of the device beside those that layers keep.
struct Beside {
  std::int64_t forward = 0, backward = 0;
};

class Building {
 public:
  explicit Building(const SavedProblem& problem) : problem_(problem), result_(differentiated()) {}

  ModelChain run() {
    const bool by_layer = problem_.plan.order == runtime::MicroStepOrder::by_layer;
    result_.layers = list_saved_layers(graph_, result_.nothing_chosen.values(),
                                       by_layer ? problem_.plan.micro_steps : 1);
    of_block_.assign(graph_.blocks.size(), nullptr);
    for (const SavedLayer& layer : result_.layers)
      of_block_[static_cast<std::size_t>(layer.block)] = &layer;
    find_classes();
    const std::vector<SavedWay> kept = all_kept();
    all_kept_ = measure(kept);
    beside_ = beside_kept(all_kept_, kept);
    for (std::size_t turn = 0; measure_ways(turn); ++turn) continue;
    result_.runs = all_kept_.runs;
    result_.persistent_bytes = all_kept_.persistent_bytes;
    result_.has_transfers = all_kept_.has_transfers;
    add_blocks();
    for (const LayerClass& layers : classes_) add_options(layers);
    add_engines();
    subtract_base();
    return std::move(result_);
  }

 private:
  ModelChain differentiated() {
    graph_ = problem_.model.build(problem_.plan.shape, compile::ModelUse::train).graph;
    std::vector<bool> frozen;
    for (const runtime::UnitPlan& unit : problem_.plan.units)
      frozen.push_back(!unit.recipe.trainable);
    runtime::differentiate(graph_, {problem_.plan.gradient.produced, std::move(frozen)});
    return {.nothing_chosen = runtime::SavedChoices(graph_)};
  }

  void find_classes() {
    for (std::size_t l = 0; l < result_.layers.size(); ++l) {
      const SavedLayer& layer = result_.layers[l];
      const auto like = std::ranges::find_if(classes_, [&](const LayerClass& other) {
        return result_.layers[other.layers.front()].is_like(layer);
      });
      if (like != classes_.end()) {
        like->layers.push_back(l);
        continue;
      }
      classes_.push_back({.layers = {l}, .ways = ways_to_remake(layer)});
      if (!problem_.may_recompute) classes_.back().ways.resize(1);
      classes_.back().uses.resize(classes_.back().ways.size());
    }
  }

  [[nodiscard]] std::vector<SavedWay> all_kept() const {
    std::vector<SavedWay> ways;
    for (const SavedLayer& layer : result_.layers)
      ways.emplace_back(layer.groups.size(), SavedAction::keep);
    return ways;
  }

  /// `ways`: one for each layer.
  [[nodiscard]] StepUse measure(const std::vector<SavedWay>& ways) {
    runtime::SavedChoices choices = result_.nothing_chosen;
    for (std::size_t l = 0; l < ways.size(); ++l) choose(choices, result_.layers[l], ways[l]);
    const compile::Compiled made = compile_unscheduled(problem_, choices.actions());
    result_.work += made.work;
    return measure_blocks(made.programs, problem_.machine, graph_.blocks);
  }

  /// Subtracts what layers keep: in the forward pass those before a block, in the backward pass
  /// the block itself, too.
  [[nodiscard]] std::vector<Beside> beside_kept(const StepUse& use,
                                                const std::vector<SavedWay>& ways) const {
    std::vector<Beside> beside;
    std::int64_t kept = 0;
    std::size_t l = 0;
    for (std::size_t b = 0; b < use.blocks.size(); ++b) {
      const std::int64_t before = kept;
      if (of_block_[b] != nullptr) kept += of_block_[b]->bytes(ways[l++], SavedAction::keep);
      beside.push_back({use.blocks[b].forward_bytes - before, use.blocks[b].backward_bytes - kept});
    }
    return beside;
  }

  /// Gives each layer a way of its class that was not measured before; false: there is none left.
  bool measure_ways(std::size_t turn) {
    std::vector<SavedWay> ways = all_kept();
    std::vector<std::tuple<LayerClass*, std::size_t, std::size_t>> asked;  // class, way, layer
    for (LayerClass& layers : classes_)
      for (std::size_t k = 0; k < layers.layers.size(); ++k) {
        const std::size_t way = 1 + turn * layers.layers.size() + k;
        if (way >= layers.ways.size()) break;
        ways[layers.layers[k]] = layers.ways[way];
        asked.emplace_back(&layers, way, layers.layers[k]);
      }
    if (asked.empty()) return false;
    const StepUse use = measure(ways);
    const std::vector<Beside> beside = beside_kept(use, ways);
    for (const auto& [layers, way, l] : asked) {
      const auto b = static_cast<std::size_t>(result_.layers[l].block);
      layers->uses[way] = {
          std::max<std::int64_t>(0, use.blocks[b].backward_ns - all_kept_.blocks[b].backward_ns),
          std::max<std::int64_t>(0, beside[b].backward - beside_[b].backward),
          std::min<std::int64_t>(0, beside[b].forward - beside_[b].forward)};
    }
    return true;
  }

  void add_blocks() {
    result_.chain.classes.push_back({ChainOption{}});  // of blocks without a choice
    result_.ways.emplace_back();
    for (std::size_t b = 0; b < graph_.blocks.size(); ++b) {
      const BlockUse& use = all_kept_.blocks[b];
      result_.chain.blocks.push_back(
          {.class_index = 0,
           .forward_ns = use.forward_ns,
           .backward_ns = use.backward_ns,
           .forward_base_bytes = std::max<std::int64_t>(0, beside_[b].forward),
           .backward_base_bytes = std::max<std::int64_t>(0, beside_[b].backward)});
    }
  }

  /// Positions in the forward pass have the bytes of the way that needs least there. What others
  /// need more is part of their working set, since the backward pass of the same layer, with as
  /// much kept before it, then needs no less than its forward pass. Layers whose passes differ by
  /// the same bytes share options.
  void add_options(const LayerClass& layers) {
    std::int64_t least = 0;
    for (const WayUse& use : layers.uses) least = std::min(least, use.forward_bytes);
    std::map<std::int64_t, int> class_of_excess;
    for (const std::size_t l : layers.layers) {
      runtime::ChainBlock& block =
          result_.chain.blocks[static_cast<std::size_t>(result_.layers[l].block)];
      const std::int64_t excess = block.forward_base_bytes - block.backward_base_bytes;
      block.forward_base_bytes = std::max<std::int64_t>(0, block.forward_base_bytes + least);
      const auto [at, fresh] =
          class_of_excess.try_emplace(excess, static_cast<int>(result_.chain.classes.size()));
      if (fresh) add_class(layers, excess);
      block.class_index = at->second;
    }
  }

  /// `excess`: bytes beside what is kept, of the forward pass above those of the backward pass.
  void add_class(const LayerClass& layers, std::int64_t excess) {
    const SavedLayer& layer = result_.layers[layers.layers.front()];
    std::vector<ChainOption> options;
    std::vector<SavedWay> ways;
    for (std::size_t w = 0; w < layers.ways.size(); ++w) {
      const WayUse& use = layers.uses[w];
      const std::int64_t kept = layer.bytes(layers.ways[w], SavedAction::keep);
      const auto add = [&](const SavedWay& way) {
        options.push_back(
            {.kept_bytes = layer.bytes(way, SavedAction::keep),
             .host_bytes = layer.bytes(way, SavedAction::host),
             .disk_bytes = layer.bytes(way, SavedAction::disk),
             .recompute_ns = use.recompute_ns,
             .working_bytes = std::max(use.backward_bytes, excess + use.forward_bytes - kept)});
        ways.push_back(way);
      };
      add(layers.ways[w]);
      for (const SavedAction to : ways_to_leave())
        for (const SavedWay& way : ways_to_send(layer, layers.ways[w], to)) add(way);
    }
    result_.chain.classes.push_back(std::move(options));
    result_.ways.push_back(std::move(ways));
  }

  [[nodiscard]] std::vector<SavedAction> ways_to_leave() const {
    if (!problem_.may_leave || problem_.host_bytes <= 0) return {};
    if (problem_.may_use_disk) return {SavedAction::host, SavedAction::disk};
    return {SavedAction::host};
  }

  void add_engines() {
    const machine::Machine& machine = problem_.machine;
    runtime::Chain& chain = result_.chain;
    const machine::Link& link = machine.link;
    chain.link = {chain_rate(reached(link.to_host, link.efficiency), all_kept_.download_share),
                  chain_rate(reached(link.to_device, link.efficiency), all_kept_.upload_share)};
    if (problem_.may_use_disk)
      chain.disk = {chain_rate(machine.disk.write_rate, 0), chain_rate(machine.disk.read_rate, 0)};
    chain.host_budget_bytes = problem_.host_bytes;
  }

  void subtract_base() {
    std::int64_t base = std::numeric_limits<std::int64_t>::max();
    for (const runtime::ChainBlock& block : result_.chain.blocks)
      base = std::min({base, block.forward_base_bytes, block.backward_base_bytes});
    for (runtime::ChainBlock& block : result_.chain.blocks) {
      block.forward_base_bytes -= base;
      block.backward_base_bytes -= base;
    }
    result_.base_bytes = base;
  }

  const SavedProblem& problem_;
  runtime::Graph graph_;
  ModelChain result_;
  std::vector<const SavedLayer*> of_block_;  ///< null for blocks without a choice
  std::vector<LayerClass> classes_;
  StepUse all_kept_;
  std::vector<Beside> beside_;  ///< with everything kept
};

}  // namespace

compile::Compiled compile_unscheduled(const SavedProblem& problem,
                                      std::vector<runtime::BlockActions> saved) {
  runtime::Plan plan = unscheduled(problem.plan);
  plan.saved = std::move(saved);
  plan.budget_bytes = runtime::kUnlimitedBytes;
  plan.host_bytes = runtime::kUnlimited;
  plan.shorter_sequences.clear();  // they need less
  return compile::compile(problem.model, plan, problem.machine, problem.where);
}

const SavedWay& ModelChain::way_of(const ChainChoice& choice, const SavedLayer& layer) const {
  const auto b = static_cast<std::size_t>(layer.block);
  return ways[static_cast<std::size_t>(chain.blocks[b].class_index)]
             [static_cast<std::size_t>(choice[b])];
}

std::vector<runtime::BlockActions> ModelChain::actions(const ChainChoice& choice) const {
  runtime::SavedChoices choices = nothing_chosen;
  for (const SavedLayer& layer : layers) choose(choices, layer, way_of(choice, layer));
  return choices.actions();
}

std::optional<ChainChoice> ModelChain::choice_of(const std::vector<SavedWay>& wanted) const {
  ChainChoice choice(chain.blocks.size(), 0);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto b = static_cast<std::size_t>(layers[l].block);
    const auto& known = ways[static_cast<std::size_t>(chain.blocks[b].class_index)];
    const auto at = std::ranges::find(known, wanted[l]);
    if (at == known.end()) return {};
    choice[b] = static_cast<int>(at - known.begin());
  }
  return choice;
}

std::vector<ChainChoice> ModelChain::plain_choices() const {
  std::vector<ChainChoice> choices;
  const auto add = [&](const std::vector<SavedWay>& wanted) {
    if (auto choice = choice_of(wanted)) choices.push_back(std::move(*choice));
  };
  struct Step {
    double price;
    std::size_t layer, group;
  };
  std::vector<Step> steps;
  std::vector<SavedWay> kept, cheap;
  double whole = 0, freed = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto& groups = layers[l].groups;
    kept.emplace_back(groups.size(), SavedAction::keep);
    cheap.push_back(kept.back());
    for (std::size_t g = 0; g < groups.size() && groups[g].can_be_remade; ++g) {
      steps.push_back({groups[g].price, l, g});
      whole += static_cast<double>(groups[g].bytes);
      if (groups[g].is_cheap) cheap.back()[g] = SavedAction::recompute;
    }
  }
  add(kept);
  add(cheap);
  std::ranges::stable_sort(steps, [](const Step& a, const Step& b) {
    return std::pair(a.price, a.layer) < std::pair(b.price, b.layer);
  });
  int sixteenth = 1;
  for (const Step& step : steps) {
    kept[step.layer][step.group] = SavedAction::recompute;
    freed += static_cast<double>(layers[step.layer].groups[step.group].bytes);
    if (16 * freed < sixteenth * whole) continue;
    while (16 * freed >= sixteenth * whole) ++sixteenth;
    add(kept);
  }
  return choices;
}

ModelChain chain_of_model(const SavedProblem& problem) { return Building(problem).run(); }

}  // namespace strata::plan
