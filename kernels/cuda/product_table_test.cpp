#include "kernels/cuda/product_table.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::cuda {
namespace {

ProductTable sample() {
  const LibraryProduct plain{.m = 768,
                             .n = 1024,
                             .k = 3072,
                             .first_stride = 3072,
                             .second_stride = 3072,
                             .result_stride = 2304,
                             .first_alignment = 16,
                             .second_alignment = 4,
                             .result_alignment = 2,
                             .first_transposed = true,
                             .operands = DType::bf16,
                             .result = DType::f32};
  LibraryProduct with_bias = plain;
  with_bias.bias = DType::bf16;
  with_bias.bias_alignment = 8;
  with_bias.accumulate = true;
  const ProductAlgorithm algorithm{.words = {1, 2, ~std::uint64_t{0}, 4, 5, 6, 7, 0xfe},
                                   .workspace_bytes = 4096};
  const ProductMachine machine{.gpu = "NVIDIA H200", .library = 130100};
  ProductMachine rounding = machine;
  rounding.tf32 = true;
  return {{machine,
           {{plain, {.algorithm = algorithm, .microseconds = 12.25}},
            {with_bias, {.algorithm = {}, .microseconds = 0}}}},
          {rounding, {}}};
}

std::string refusal(const std::string& text) {
  return message_of<DataError>([&] { product_table_from_json(text, "table"); });
}

/// The text of the sample with the first occurrence of `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_json(sample());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ProductTable, ReadsWhatItWrote) {
  const ProductTable table = sample();
  EXPECT_EQ(product_table_from_json(to_json(table), "table"), table);
  EXPECT_EQ(product_table_from_json(to_json({}), "table"), ProductTable{});
}

TEST(ProductTable, RefusesWhatItWouldNotWriteAndSaysWhere) {
  EXPECT_EQ(refusal(changed("algorithms 1", "algorithms 2")),
            "table:2: format: string \"strata product algorithms 2\", expected \"strata product "
            "algorithms 1\"");
  EXPECT_NE(refusal(changed("\"tf32\": false,", "\"tf32\": false, \"speed\": 1,"))
                .find("machines[0]: has members that are not known; known: gpu, library, tf32"),
            std::string::npos);
  EXPECT_NE(refusal(changed("\"operands\": \"bf16\",", "")).find("operands"), std::string::npos);
  EXPECT_NE(refusal(changed("\"bf16\"", "\"int32\"")).find("expected fp32, bf16 or fp16"),
            std::string::npos);
  EXPECT_NE(
      refusal(changed("768", "-768")).find("machines[0].products[0].extents[0]: integer -768"),
      std::string::npos);
  EXPECT_NE(refusal(changed("16,", "3,")).find("power of two"), std::string::npos);
  EXPECT_NE(refusal(changed("12.25", "-1")).find("expected a time"), std::string::npos);
  EXPECT_NE(refusal(changed("4096", "33554433"))
                .find("machines[0].products[0].workspace_bytes: integer 33554433, expected 0 to "
                      "33554432"),
            std::string::npos);
}

TEST(ProductTable, TakesProductsOfAnySize) {
  ProductTable table = sample();
  LibraryProduct large = table.begin()->second.begin()->first;
  large.m = large.n = std::int64_t{1} << 40;
  table.begin()->second[large] = {.algorithm = ProductAlgorithm{.workspace_bytes = 32 << 20}};
  EXPECT_EQ(product_table_from_json(to_json(table), "table"), table);
}

TEST(ProductTable, RefusesAlgorithmsThatAreNot128Digits) {
  const std::string hex = "0000000000000001";
  for (const char* wrong : {"000000000000001", "000000000000000g", "0x00000000000001", ""})
    EXPECT_NE(refusal(changed(hex, wrong)).find("expected 128 hexadecimal digits"),
              std::string::npos)
        << wrong;
}

TEST(ProductTable, RefusesTheSameProductOrMachineTwice) {
  EXPECT_NE(refusal(changed("\"tf32\": true", "\"tf32\": false")).find("this machine occurs twice"),
            std::string::npos);
  std::string text = to_json(sample());
  const std::size_t first = text.find('{', text.find("\"products\""));
  text.insert(first, text.substr(first, text.find('}', first) + 1 - first) + ",");
  EXPECT_NE(refusal(text).find("machines[0].products[1]: the product 768x1024x3072: bf16"),
            std::string::npos)
      << refusal(text);
}

}  // namespace
}  // namespace strata::cuda
