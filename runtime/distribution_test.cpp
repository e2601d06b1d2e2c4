#include "runtime/graph.h"

#include <gtest/gtest.h>

#include "runtime/autodiff.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

TEST(Distribution, IsPrintedWithValuesThatAreNotReplicated) {
  Graph graph;
  graph.blocks = {"only"};
  Value value;
  value.name = "x";
  value.type = {DType::f32, kernels::Shape{4, 8}};
  value.distribution = {Distribution::Kind::sharded, comm::MeshAxis::tensor, 1};
  const ValueId x = graph.add_value(value);
  const ValueId rows = graph.add_view(x, 0, {DType::f32, kernels::Shape{2, 8}}, "rows");
  graph.apply("copy", {rows}, {}, 0, Pass::forward, "y");
  EXPECT_NE(graph.to_string().find("y:fp32[2, 8] = copy(rows:fp32[2, 8] sharded(1, tensor))"),
            std::string::npos)
      << graph.to_string();
  EXPECT_EQ(to_string(Distribution{}), "replicated");
}

TEST(Distribution, GradientsOfParametersArePartialSumsOverTheDataAxis) {
  SmallModel model = small_model();
  EXPECT_EQ(model.graph.to_string().find("partial_sum"), std::string::npos);
  differentiate(model.graph, {});
  for (ValueId gradient : model.graph.unit_gradients)
    EXPECT_EQ(to_string(model.graph.values[static_cast<std::size_t>(gradient)].distribution),
              "partial_sum(data)");
  EXPECT_NE(model.graph.to_string().find(" partial_sum(data)"), std::string::npos);
}

}  // namespace
}  // namespace strata::runtime
