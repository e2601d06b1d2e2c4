#include "plan/saved_layers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/layers.h"
#include "runtime/program/arena_alignment.h"

namespace strata::plan {
namespace {

using runtime::SavedAction;
using runtime::SavedValue;

/// True for values that the layer holds as its own (SavedLayer).
bool belongs_to(const SavedValue& value, int layer) {
  return value.last_user_block == layer && value.first_user_block == value.block &&
         (value.block == layer || value.block == layer - 1);
}

void add_value(SavedGroup& group, const SavedValue& value, std::int64_t copies) {
  group.roots.push_back(value.root);
  group.bytes += copies * runtime::room_of(value.bytes, runtime::Tier::device);
  group.pinned_bytes += copies * runtime::room_of(value.bytes, runtime::Tier::pinned);
  group.can_leave = group.can_leave && value.can_leave && value.bytes >= kLeastLeavingBytes;
  group.is_cheap = group.is_cheap && value.is_cheap;
  if (!group.is_input) group.names.push_back(value.name);
}

SavedLayer saved_layer(int block, const std::vector<SavedValue>& values, std::int64_t copies) {
  SavedLayer layer{block, {}};
  struct Part {
    SavedGroup group;
    double work = 0;
    std::int64_t value_bytes = 0;
  };
  std::map<std::pair<int, double>, Part> parts;  // as SavedChoices::recompute_part has them
  for (const SavedValue& value : values) {
    if (!belongs_to(value, block)) continue;
    const auto [at, fresh] = parts.try_emplace({value.maker, value.work});
    Part& part = at->second;
    if (fresh)
      part.group = {.can_be_remade = value.block == block,
                    .is_cheap = true,
                    .can_leave = true,
                    .is_input = value.block != block};
    part.work = value.work;
    part.value_bytes += value.bytes;
    add_value(part.group, value, copies);
  }
  for (auto& [key, part] : parts) {
    part.group.price = part.work / static_cast<double>(std::max<std::int64_t>(1, part.value_bytes));
    if (part.group.is_input) {  // equal layers are alike, whatever made their input
      part.group.price = 0;
      part.group.is_cheap = false;
    }
    layer.groups.push_back(std::move(part.group));
  }
  std::ranges::stable_sort(layer.groups, [](const SavedGroup& a, const SavedGroup& b) {
    return std::pair(!a.can_be_remade, a.price) < std::pair(!b.can_be_remade, b.price);
  });
  return layer;
}

}  // namespace

bool SavedGroup::is_like(const SavedGroup& other) const {
  return bytes == other.bytes && price == other.price && can_be_remade == other.can_be_remade &&
         is_cheap == other.is_cheap && can_leave == other.can_leave && is_input == other.is_input &&
         names == other.names;
}

bool SavedLayer::is_like(const SavedLayer& other) const {
  return std::ranges::equal(groups, other.groups,
                            [](const auto& a, const auto& b) { return a.is_like(b); });
}

std::int64_t SavedLayer::bytes(const SavedWay& way, SavedAction action) const {
  const bool leaves = action == SavedAction::host || action == SavedAction::disk;
  std::int64_t bytes = 0;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (way[g] == action) bytes += leaves ? groups[g].pinned_bytes : groups[g].bytes;
  return bytes;
}

std::vector<SavedLayer> list_saved_layers(const runtime::Graph& graph,
                                          const std::vector<SavedValue>& values,
                                          std::int64_t copies) {
  std::vector<SavedLayer> layers;
  for (const int block : layers_of(graph.blocks))
    layers.push_back(saved_layer(block, values, copies));
  return layers;
}

std::vector<SavedWay> ways_to_remake(const SavedLayer& layer) {
  std::vector<SavedWay> ways{SavedWay(layer.groups.size(), SavedAction::keep)};
  SavedWay cheap = ways.front();
  for (std::size_t g = 0; g < layer.groups.size() && layer.groups[g].can_be_remade; ++g) {
    ways.push_back(ways.back());
    ways.back()[g] = SavedAction::recompute;
    if (layer.groups[g].is_cheap) cheap[g] = SavedAction::recompute;
  }
  if (std::ranges::find(ways, cheap) == ways.end()) ways.push_back(std::move(cheap));
  return ways;
}

std::vector<SavedWay> ways_to_send(const SavedLayer& layer, const SavedWay& way, SavedAction to) {
  std::vector<SavedWay> ways;
  SavedWay sent = way;
  for (std::size_t g = layer.groups.size(); g-- > 0;) {
    if (sent[g] != SavedAction::keep || !layer.groups[g].can_leave) continue;
    sent[g] = to;
    ways.push_back(sent);
  }
  return ways;
}

}  // namespace strata::plan
