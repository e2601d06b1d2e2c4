#include "runtime/program/persistent_layout.h"

#include "core/check.h"
#include "core/error.h"
#include "runtime/program/arena_alignment.h"

namespace strata::runtime {

void PersistentLayout::add(const std::string& name, const kernels::TensorType& type, Tier tier,
                           Role role) {
  const auto [at, fresh] = index_.try_emplace(name, values_.size());
  if (!fresh) {
    const PersistentValue& known = values_[at->second];
    STRATA_CHECK(known.type == type && known.tier == tier, name, known.type.to_string(), "now",
                 type.to_string());
    return;
  }
  std::int64_t& end = bytes_[static_cast<int>(tier)];
  values_.push_back({name, type, tier, role, end});
  end += room_of(type.span_bytes(), tier);
}

void PersistentLayout::add_state(const Graph& graph) {
  const auto use = [&](ValueId id) {
    const Value& root = graph.values[static_cast<std::size_t>(graph.root_of(id))];
    if (root.storage == Storage::persistent && root.role != Role::input)
      add(root.name, root.type, root.tier, root.role);
  };
  for (const Node& node : graph.nodes) {
    for (ValueId in : node.inputs) use(in);
    for (ValueId out : node.outputs) use(out);
  }
}

void PersistentLayout::add_inputs(const Graph& graph) {
  for (const Value& value : graph.values)
    if (value.role == Role::input && value.root == kNoValue && value.storage == Storage::persistent)
      add(value.name, value.type, value.tier, value.role);
}

bool PersistentLayout::has(const std::string& name) const { return index_.contains(name); }

const PersistentValue& PersistentLayout::find(const std::string& name) const {
  const auto at = index_.find(name);
  if (at == index_.end()) throw InvalidArgument("no persistent storage named '" + name + "'");
  return values_[at->second];
}

}  // namespace strata::runtime
