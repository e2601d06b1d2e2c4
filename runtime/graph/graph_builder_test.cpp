#include "runtime/graph/graph_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "core/error.h"

namespace strata::runtime {
namespace {

constexpr Initializer kNormal{0.1, 0};

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

/// A builder in block "layer.0", and a value of 2 x 4 rows of 64 numbers.
struct Built {
  GraphBuilder b{DType::f32, 2, 4};
  ValueId x;

  Built() {
    b.begin_block("embedding");
    const ValueId table = b.matrix({{"wte.weight", 16}}, 64, kNormal);
    x = b.embedding(table, kNoValue);
    b.begin_block("layer.0");
  }
};

TEST(GraphBuilder, RefusesWhatComesBeforeTheFirstBlock) {
  GraphBuilder b(DType::f32, 2, 4);
  const std::string end = " comes before the first begin_block(); name its block first";
  EXPECT_EQ(error_of([&] {
              b.matrix({{"wte.weight", 16}}, 64, kNormal);
            }),
            "parameter 'wte.weight'" + end);
  EXPECT_EQ(error_of([&] { b.padded_matrix("head.weight", 10, 16, 64, kNormal); }),
            "parameter 'head.weight'" + end);
  EXPECT_EQ(error_of([&] {
              b.vector({{"ln.weight", 64}}, kNormal);
            }),
            "parameter 'ln.weight'" + end);
  EXPECT_EQ(error_of([&] { b.gelu(b.inputs().tokens, true); }), "operation gelu" + end);
  EXPECT_EQ(error_of([&] { b.rope_in_place(b.inputs().tokens, b.inputs().tokens); }),
            "operation rope" + end);
}

TEST(GraphBuilder, NamesBlockOperationAndOperandsOfAWrongShape) {
  Built m;
  const ValueId w = m.b.matrix({{"h.0.weight", 64}}, 65, kNormal);
  EXPECT_EQ(error_of([&] { m.b.linear(m.x, {w}); }),
            "block 'layer.0', linear(embedding.0.embedding fp32[8, 64], h.0.weight fp32[64, 65]): "
            "linear: W is fp32[64, 65], expected an input size of 64");
}

TEST(GraphBuilder, NamesTheOperandThatIsNoValue) {
  Built m;
  EXPECT_EQ(error_of([&] { m.b.linear(m.x, {}); }),
            "block 'layer.0', linear: operand 1 is no value of this builder; pass what one of its "
            "methods returned");
  EXPECT_EQ(error_of([&] { m.b.rope_in_place(m.x + 1000, m.x); }),
            "block 'layer.0', rope: operand 0 is no value of this builder; pass what one of its "
            "methods returned");
}

TEST(GraphBuilder, RefusesHeadsThatDoNotFitThePackedProduct) {
  Built m;
  EXPECT_EQ(error_of([&] { m.b.split_heads(m.x, 4, 2, 16); }),
            "block 'layer.0', split_heads(embedding.0.embedding fp32[8, 64]): 4 query and 2 x 2 "
            "key and value heads of size 16 need 128 columns");
  EXPECT_EQ(error_of([&] { m.b.split_heads(m.x, 2, 1, 16); }), "");
}

TEST(GraphBuilder, NamesTheParameterThatCannotBe) {
  Built m;
  EXPECT_EQ(error_of([&] {
              m.b.matrix({{"h.0.weight", 0}}, 64, kNormal);
            }),
            "block 'layer.0', parameter 'h.0.weight': 0 rows of 64; both must be at least 1");
  EXPECT_EQ(error_of([&] { m.b.padded_matrix("head.weight", 10, 8, 64, kNormal); }),
            "block 'layer.0', parameter 'head.weight': 10 rows padded to 8; pad to at least its "
            "own rows");
  EXPECT_EQ(error_of([&] {
              m.b.matrix({{"wte.weight", 16}}, 64, kNormal);
            }),
            "block 'layer.0', parameter 'wte.weight': block 'embedding' has one of this name; give "
            "each parameter a name of its own");
  EXPECT_EQ(error_of([&] { m.b.vector({}, kNormal); }),
            "a parameter has no parts; give at least one name with its rows");
}

TEST(GraphBuilder, NamesWhatIsNoProbabilityOfDropout) {
  Built m;
  for (const double p : {1.0, 1.5, -0.1, std::nan("")}) {
    const std::string start = "block 'layer.0': dropout of " + std::to_string(p) + "; expected";
    EXPECT_EQ(error_of([&] { m.b.dropout(m.x, p); }).find(start), 0U) << p;
    EXPECT_EQ(error_of([&] { m.b.residual_add(m.x, m.x, p); }).find(start), 0U) << p;
  }
}

TEST(GraphBuilder, NamesTheAttributeThatIsMissing) {
  Built m;
  EXPECT_EQ(error_of([&] { m.b.rope_table({}); }),
            "block 'layer.0', rope_table(): attribute 'head_size' is missing");
}

TEST(GraphBuilder, RefusesEverythingAfterItsGraphIsFinished) {
  Built m;
  m.b.finish();
  const std::string fault =
      "this builder's graph is finished; make another builder for another graph";
  EXPECT_EQ(error_of([&] { m.b.begin_block("more"); }), fault);
  EXPECT_EQ(error_of([&] { m.b.gelu(m.x, true); }), fault);
  EXPECT_EQ(error_of([&] { m.b.matrix({{"w", 2}}, 2, kNormal); }), fault);
  EXPECT_EQ(error_of([&] { m.b.finish(); }), fault);
}

TEST(GraphBuilder, RefusesAnEmptyMicroBatch) {
  EXPECT_EQ(error_of([] { GraphBuilder(DType::f32, 0, 4); }),
            "a graph of 0 sequences of 4 tokens; expected at least 1 of each");
}

}  // namespace
}  // namespace strata::runtime
