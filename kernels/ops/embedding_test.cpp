#include "kernels/ops/embedding.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/testing/embedding_reference.h"
#include "kernels/testing/finite_difference.h"
#include "kernels/testing/layer_test_support.h"

namespace strata::kernels {
namespace {

const std::vector<std::int32_t> kIds{3, 0, 3, 3, 10, 7, 0, 3, 2, 10, 3, 5};
constexpr std::int64_t kVocabulary = 11, kSequence = 6, kPositions = 9;

double number_of(DType type) { return static_cast<double>(type); }

TEST(Embedding, AgreesWithTheReference) {
  for (const std::int64_t columns : {1, 19, 1100, 1104})
    for (const bool with_positions : {false, true})
      for (DType dtype : kFloatTypes) {
        OperationCase test{
            embedding_operation(),
            embedding_kernel,
            {TestOperand::integers(kIds), TestOperand::random(dtype, {kVocabulary, columns}, 1)},
            {{"sequence", static_cast<double>(kSequence)}, {"dtype", number_of(dtype)}},
            {}};
        if (with_positions)
          test.inputs.push_back(TestOperand::random(dtype, {kPositions, columns}, 2));
        test.expected = {
            reference::embedding(kIds, test.inputs[1].values(),
                                 with_positions ? test.inputs[2].values() : std::vector<double>{},
                                 static_cast<std::size_t>(columns), kSequence)};
        verify(test, std::to_string(columns) + " columns " + std::string(name_of(dtype)));
      }
}

TEST(Embedding, BackwardAddsRowsToWhatExists) {
  for (const std::int64_t columns : {1, 19, 300, 1040})
    for (const bool existing : {false, true})
      for (DType dtype : kFloatTypes)
        for (DType gradient : {dtype, DType::f32}) {
          OperationCase test{
              embedding_backward_operation(),
              embedding_backward_kernel,
              {TestOperand::integers(kIds), TestOperand::random(dtype, {12, columns}, 1)},
              {{"rows", static_cast<double>(kVocabulary)}, {"gradient_dtype", number_of(gradient)}},
              {std::vector<double>(static_cast<std::size_t>(kVocabulary * columns))}};
          if (existing) {
            test.inputs.push_back(TestOperand::random(gradient, {kVocabulary, columns}, 2));
            test.expected[0] = test.inputs[2].values();
          }
          reference::add_rows(kIds, test.inputs[1].values(), static_cast<std::size_t>(columns),
                              test.expected[0]);
          verify(test, std::to_string(columns) + " columns " + std::string(name_of(dtype)));
        }
}

// Adds a thousand small rows of one token: each would be lost if it were rounded to bf16 by itself.
TEST(Embedding, BackwardRoundsSumsOnce) {
  OperationCase test{embedding_backward_operation(),
                     embedding_backward_kernel,
                     {TestOperand::integers(std::vector<std::int32_t>(1000, 4)),
                      TestOperand(TensorType(DType::f32, {1000, 3})),
                      TestOperand(TensorType(DType::bf16, {kVocabulary, 3}))},
                     {{"rows", 11}, {"gradient_dtype", number_of(DType::bf16)}},
                     {std::vector<double>(33)}};
  const Tensor dx = test.inputs[1].view(), existing = test.inputs[2].view();
  std::fill_n(dx.row<float>(), 3000, 0x1p-10f);
  std::fill_n(existing.row<std::uint16_t>(), 33, std::uint16_t{0x3f80});  // 1
  for (std::size_t i = 0; i < 33; ++i) test.expected[0][i] = i / 3 == 4 ? 1 + 1000 * 0x1p-10 : 1;
  verify(test, "many small rows");
}

// A third of the rows share three tokens (hundreds each in the largest case); of the other tokens
// some occur once, some never.
TEST(Embedding, BackwardOfManyTokens) {
  constexpr std::int64_t kTable = 600;
  for (const std::int64_t rows : {31, 32, 2049, 6200})
    for (const std::int64_t columns : {16, 5}) {
      std::vector<std::int32_t> ids;
      std::mt19937 engine(static_cast<unsigned>(rows));
      for (std::int64_t n = 0; n < rows; ++n)
        ids.push_back(
            static_cast<std::int32_t>(engine() % 3 == 0 ? engine() % 3 : engine() % kTable));
      OperationCase test{
          embedding_backward_operation(),
          embedding_backward_kernel,
          {TestOperand::integers(ids), TestOperand::random(DType::bf16, {rows, columns}, 1)},
          {{"rows", static_cast<double>(kTable)}, {"gradient_dtype", number_of(DType::f32)}},
          {std::vector<double>(static_cast<std::size_t>(kTable * columns))}};
      reference::add_rows(ids, test.inputs[1].values(), static_cast<std::size_t>(columns),
                          test.expected[0]);
      verify(test, std::to_string(rows) + " rows of " + std::to_string(columns));
    }
}

TEST(Embedding, PositionBackwardAddsOverSamples) {
  for (const std::int64_t columns : {1, 19, 1100, 1104})
    for (DType dtype : kFloatTypes) {
      OperationCase test{
          position_backward_operation(),
          position_backward_kernel,
          {TestOperand::random(dtype, {12, columns}, 1)},
          {{"sequence", static_cast<double>(kSequence)}, {"rows", static_cast<double>(kPositions)}},
          {std::vector<double>(static_cast<std::size_t>(kPositions * columns))}};
      std::vector<std::int32_t> positions;
      for (int n = 0; n < 12; ++n) positions.push_back(n % kSequence);
      reference::add_rows(positions, test.inputs[0].values(), static_cast<std::size_t>(columns),
                          test.expected[0]);
      verify(test, std::to_string(columns) + " columns " + std::string(name_of(dtype)));
    }
}

TEST(Embedding, ReferenceGradientAgreesWithFiniteDifferences) {
  const std::vector<std::int32_t> ids{1, 0, 1};
  const auto table = TestOperand::random(DType::f32, {3, 2}, 1).values();
  const auto dx = TestOperand::random(DType::f32, {3, 2}, 2).values();
  std::vector<double> gradient(6);
  reference::add_rows(ids, dx, 2, gradient);
  reference::expect_gradient(
      [&](const auto& at) {
        return reference::weighted_sum(dx, reference::embedding(ids, at, {}, 2, 3));
      },
      table, gradient);
}

TEST(Embedding, GradientAccumulatesIntoATiedTable) {
  const Types inputs{TensorType(DType::i32, {12}), TensorType(DType::bf16, {kVocabulary, 4}),
                     TensorType(DType::bf16, {kPositions, 4})};
  const Attributes attributes{{"sequence", 6}, {"dtype", number_of(DType::bf16)}};
  const GradientRule rule = embedding_operation().gradient(
      inputs, embedding_operation().infer(inputs, attributes), attributes);
  ASSERT_EQ(rule.steps.size(), 2u);
  EXPECT_TRUE(rule.steps[0].accumulates);
  EXPECT_EQ(rule.steps[0].extra.integer("rows"), kVocabulary);
  EXPECT_EQ(rule.steps[1].extra.integer("rows"), kPositions);
}

TEST(Embedding, RefusesASequenceBeyondThePositions) {
  const Types inputs{TensorType(DType::i32, {10}), TensorType(DType::f32, {kVocabulary, 4}),
                     TensorType(DType::f32, {kPositions, 4})};
  EXPECT_THROW(embedding_operation().infer(inputs, {{"sequence", 10}, {"dtype", 0}}),
               InvalidArgument);
}

TEST(Embedding, BackwardRefusesOperandsThatDoNotBelongTogether) {
  const TensorType ids(DType::i32, {12}), dx(DType::bf16, {12, 4});
  const TensorType table(DType::f32, {kVocabulary, 4});
  const auto infer = [](const Types& inputs) {
    return embedding_backward_operation().infer(
        inputs, {{"rows", static_cast<double>(kVocabulary)}, {"gradient_dtype", 0}});
  };
  EXPECT_EQ(infer({ids, dx, table}), Types{table});
  EXPECT_THROW(infer({TensorType(DType::i32, {11}), dx, table}), InvalidArgument);
  EXPECT_THROW(infer({TensorType(DType::i64, {12}), dx, table}), InvalidArgument);
  EXPECT_THROW(infer({ids, dx, TensorType(DType::f32, {kVocabulary, 5})}), InvalidArgument);
  EXPECT_THROW(infer({ids, dx, TensorType(DType::bf16, {kVocabulary, 4})}), InvalidArgument);
}

}  // namespace
}  // namespace strata::kernels
