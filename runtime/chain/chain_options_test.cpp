#include "runtime/chain/chain_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::runtime {
namespace {

using testing::ElementsAre;

TEST(UndominatedOptions, RemainWhereEachIsBestInSomething) {
  const std::vector<ChainOption> options{{.kept_bytes = 10},
                                         {.kept_bytes = 4, .host_bytes = 6},
                                         {.kept_bytes = 4, .disk_bytes = 6},
                                         {.kept_bytes = 4, .recompute_ns = 9},
                                         {.kept_bytes = 4, .recompute_ns = 8, .working_bytes = 1}};
  EXPECT_THAT(undominated_options(options), ElementsAre(0, 1, 2, 3, 4));
}

TEST(UndominatedOptions, LeaveOutWhatIsWorseInOneFieldAndBetterInNone) {
  const ChainOption base{5, 5, 5, 5, 5};
  for (auto field : {&ChainOption::kept_bytes, &ChainOption::host_bytes, &ChainOption::disk_bytes,
                     &ChainOption::recompute_ns, &ChainOption::working_bytes}) {
    ChainOption worse = base;
    worse.*field += 1;
    EXPECT_THAT(undominated_options({worse, base}), ElementsAre(1));
    EXPECT_THAT(undominated_options({base, worse}), ElementsAre(0));
  }
}

TEST(UndominatedOptions, KeepTheFirstOfEqualOnes) {
  const ChainOption same{1, 2, 3, 4, 5};
  EXPECT_THAT(undominated_options({same, {.kept_bytes = 9}, same, same}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace strata::runtime
