#include "runtime/testing/small_model.h"

#include "runtime/graph/collective_node.h"
#include "runtime/graph/graph_builder.h"

namespace strata::runtime {
namespace {

using kernels::Shape;
using kernels::TensorType;

comm::Collective even_collective(comm::CollectiveKind kind, std::int64_t elements, int world) {
  comm::Collective collective;
  collective.kind = kind;
  for (int r = 0; r <= world; ++r) collective.partition.bounds.push_back(elements / world * r);
  return collective;
}

ValueId flat(Graph& graph, std::string name, std::int64_t elements, Storage storage) {
  Value value;
  value.name = std::move(name);
  value.type = TensorType(DType::f32, Shape{elements});
  value.storage = storage;
  return graph.add_value(std::move(value));
}

}  // namespace

SmallModel small_model(const SmallModelShape& shape) {
  constexpr double kEpsilon = 1e-5;
  const Initializer normal{0.1, 0}, one{0, 1}, zero{0, 0};
  GraphBuilder b(DType::f32, shape.batch, shape.sequence);
  b.begin_block("embedding");
  const ValueId table =
      b.padded_matrix("table", shape.vocabulary, shape.vocabulary, shape.hidden, normal);
  ValueId x = b.dropout(b.embedding(table, kNoValue), shape.dropout);
  for (int i = 0; i < shape.layers; ++i) {
    const std::string name = "layer." + std::to_string(i);
    b.begin_block(name);
    const Affine norm{b.vector({{name + ".norm.weight", shape.hidden}}, one),
                      b.vector({{name + ".norm.bias", shape.hidden}}, zero)};
    const Affine in{b.matrix({{name + ".in.weight", shape.width}}, shape.hidden, normal),
                    b.vector({{name + ".in.bias", shape.width}}, zero)};
    const Affine out{b.matrix({{name + ".out.weight", shape.hidden}}, shape.width, normal),
                     kNoValue};
    const ValueId inner = b.gelu(b.linear(b.norm(x, norm, kEpsilon, false), in), true);
    x = b.residual_add(x, b.linear(inner, out), shape.dropout);
  }
  b.begin_block("head");
  const Affine norm{b.vector({{"norm.weight", shape.hidden}}, one), kNoValue};
  ValueId head = table;
  if (!shape.tied_head)
    head = b.padded_matrix("head", shape.vocabulary, shape.vocabulary, shape.hidden, normal);
  const ValueId loss = b.head_loss(b.norm(x, norm, kEpsilon, true), head, shape.vocabulary);
  return {b.finish(), loss};
}

Graph relay(int links, std::int64_t elements, int world) {
  using comm::CollectiveKind;
  Graph graph;
  const ValueId start = flat(graph, "start", elements, Storage::persistent);
  graph.blocks = {"relay"};
  ValueId sum = graph.apply("copy", {start}, {}, 0, Pass::forward, "copy start").front();
  for (int i = 0; i < links; ++i) {
    const std::string link = std::to_string(i);
    const ValueId shard = flat(graph, "shard." + link, elements / world, Storage::persistent);
    const ValueId whole = flat(graph, "whole." + link, elements, Storage::transient);
    graph.values[static_cast<std::size_t>(whole)].role = Role::parameter;
    graph.nodes.push_back(
        collective_node(even_collective(CollectiveKind::all_gather, elements, world), shard, whole,
                        0, Pass::forward, "gather " + link));
    sum = graph.apply("add", {sum, whole}, {}, 0, Pass::forward, "add " + link).front();
  }
  const ValueId result = flat(graph, "result", elements / world, Storage::persistent);
  graph.nodes.push_back(
      collective_node(even_collective(CollectiveKind::reduce_scatter, elements, world), sum,
                      graph.next_version(result), 0, Pass::backward, "reduce"));
  graph.apply_into("copy", {sum}, {graph.next_version(start)}, {}, 0, Pass::update, "keep sum");
  return graph;
}

}  // namespace strata::runtime
