#include "runtime/graph/persistent_values.h"

#include "core/check.h"

namespace strata::runtime {

using kernels::Shape;
using kernels::TensorType;

ValueId persistent_root(Graph& graph, const std::string& name, const TensorType& type, Role role,
                        Tier tier) {
  if (const ValueId id = graph.find_persistent(name); id != kNoValue) {
    const Value& known = graph.values[static_cast<std::size_t>(id)];
    STRATA_CHECK(known.type == type && known.tier == tier, name, known.type.to_string(),
                 name_of(known.tier), type.to_string(), name_of(tier));
    return id;
  }
  Value value;
  value.name = name;
  value.type = type;
  value.storage = Storage::persistent;
  value.role = role;
  value.tier = tier;
  return graph.add_value(std::move(value));
}

ValueId persistent_value(Graph& graph, const std::string& name, const TensorType& type, Role role,
                         Tier tier) {
  const ValueId root = persistent_root(graph, name, type, role, tier);
  STRATA_CHECK(graph.values[static_cast<std::size_t>(root)].version == 0, name,
               "is written from the start; read its version instead");
  return root;
}

ValueId random_input(const Graph& graph) {
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].role == Role::input && graph.values[i].name == "rng")
      return static_cast<ValueId>(i);
  STRATA_CHECK(false, "the Graph has no random input");
}

ValueId flat_view(Graph& graph, ValueId of, std::int64_t begin, std::int64_t end,
                  std::string name) {
  const DType dtype = graph.type(of).dtype;
  return graph.add_view(of, begin * size_of(dtype), TensorType(dtype, Shape{end - begin}),
                        std::move(name));
}

}  // namespace strata::runtime
