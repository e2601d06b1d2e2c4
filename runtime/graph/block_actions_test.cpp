#include "runtime/graph/block_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::runtime {
namespace {

using testing::HasSubstr;
using enum SavedAction;

TEST(BlockActions, WhatIsWrittenIsReadBackEqual) {
  const std::vector<BlockActions> saved{{1, 2, {{"0.norm", recompute}, {"1.\"x\"", host}}},
                                        {4, 4, {}},
                                        {5, 9, {{"0.norm", disk}, {"2.gelu", keep}}}};
  const std::string text = to_json(saved);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(read_block_actions(text, "text"), saved);
  EXPECT_EQ(read_block_actions("[]", "text"), std::vector<BlockActions>());
  EXPECT_EQ(to_json(std::vector<BlockActions>()), "[]");
}

std::string refusal(std::string_view text) {
  try {
    (void)read_block_actions(text, "text");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(BlockActions, ARefusalNamesPathAndWhatIsExpected) {
  EXPECT_THAT(refusal("{}"), HasSubstr("text:1: top level: expected array"));
  EXPECT_THAT(refusal(R"([{"blocks": [1, 2]}])"), HasSubstr("[0]: misses the key \"actions\""));
  EXPECT_THAT(refusal(R"([{"blocks": [1, 2], "action": {}}])"),
              HasSubstr("[0].action: unknown key, expected one of blocks, actions"));
  EXPECT_THAT(refusal(R"([{"blocks": [-1, 2], "actions": {}}])"),
              HasSubstr("[0].blocks[0]: expected an integer from 0 to "));
  EXPECT_THAT(refusal(R"([{"blocks": [3, 2], "actions": {}}])"),
              HasSubstr("[0].blocks[1]: expected an integer from 3 to "));
  EXPECT_THAT(refusal(R"([{"blocks": [1, 3], "actions": {}}, {"blocks": [3, 4], "actions": {}}])"),
              HasSubstr("[1].blocks[0]: blocks from 3 on overlap with, or come before, those of "
                        "the range before, [1, 3]"));
  EXPECT_THAT(refusal(R"([{"blocks": [1, 2], "actions": {"0.norm": "cpu"}}])"),
              HasSubstr("expected one of keep, recompute, host, disk, found string \"cpu\""));
}

TEST(BlockActions, WhatIsKeptNeedsNoName) {
  const std::vector<BlockActions> saved{{0, 0, {{"0.embed", keep}}},
                                        {1, 2, {{"0.norm", recompute}, {"1.linear", keep}}},
                                        {3, 4, {{"0.norm", recompute}}},
                                        {6, 6, {{"0.norm", recompute}}}};
  const std::vector<BlockActions> named{{1, 4, {{"0.norm", recompute}}},
                                        {6, 6, {{"0.norm", recompute}}}};
  EXPECT_EQ(without_kept(saved), named);
  EXPECT_TRUE(has_action(saved, recompute));
  EXPECT_FALSE(has_action(named, keep));
}

}  // namespace
}  // namespace strata::runtime
