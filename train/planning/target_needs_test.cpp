// Checks what is said of the memory that a step needs.
#include "train/planning/target_needs.h"

#include <gtest/gtest.h>

#include "core/byte_size.h"

namespace strata::train {
namespace {

TEST(TargetNeeds, WritesTargetsAsOneTypesThem) {
  EXPECT_EQ(target_size_text(24'000'000'000), "24GB");
  EXPECT_EQ(target_size_text(1'500'000'000), "1500MB");
  EXPECT_EQ(target_size_text(512 * 1024 * 1024), "512MiB");
  for (const char* text : {"55.5MB", "57.6MB", "9.99MB", "1.01MB"})
    EXPECT_EQ(target_size_text(parse_byte_size(text).value()), text);
}

TEST(TargetNeeds, PutsWhatIsSaidOfTheTargetInOneBracket) {
  MemoryBudget budget;
  budget.foreseen_beside_bytes = 18 << 20;
  budget.beside_bytes = 34 << 20;
  const plan::MemoryNeeds needs{.device = 10 << 20, .disk = 1 << 20};
  EXPECT_EQ(needs_text(needs, budget, "18.00 MiB of it beside its arenas"),
            "28.00 MiB per process (44.00 MiB as targets count it, with all pages that processes "
            "share; 18.00 MiB of it beside its arenas), 1.00 MiB on the drive");
  budget.beside_bytes = budget.foreseen_beside_bytes;
  EXPECT_EQ(needs_text(needs, budget), "28.00 MiB per process, 1.00 MiB on the drive");
}

}  // namespace
}  // namespace strata::train
