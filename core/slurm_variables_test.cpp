#include "core/slurm_variables.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(SlurmVariables, CountsAreOfSuccessiveNodes) {
  EXPECT_EQ(parse_slurm_counts("4(x2),3", 8), (std::vector<int>{4, 4, 3}));
  EXPECT_EQ(parse_slurm_counts("8", 8), std::vector<int>{8});
}

TEST(SlurmVariables, WhatIsNoListOfCountsIsNone) {
  for (const char* text :
       {"", ",", "4,", ",4", "0", "9", "-1", "x", "4(x2", "4(x)", "4(x0)", "4(x2)3", "4(2)", "(x2)",
        "4 (x2)", "1(x65537)", "1(x65536),1", "4(x99999999999999999999)"})
    EXPECT_FALSE(parse_slurm_counts(text, 8)) << text;
  EXPECT_EQ(parse_slurm_counts("1(x65536)", 8)->size(), 65'536U);
}

TEST(SlurmVariables, BatchScriptsAreNoSteps) {
  EXPECT_TRUE(is_step_of_srun("0"));
  EXPECT_TRUE(is_step_of_srun("17"));
  for (const char* text : {"", "4294967291", "4294967290", "-1", "batch"})
    EXPECT_FALSE(is_step_of_srun(text)) << text;
}

}  // namespace
}  // namespace strata
