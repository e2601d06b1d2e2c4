#include "launcher/command/command_text.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

TEST(CommandText, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(command_text({"-np", "2", "train", "--output=/data/run_7"}),
            "mlaunch -np 2 train --output=/data/run_7");
  EXPECT_EQ(command_text({"sh", "-c", "echo $RANK", "", "it's", "a\nb"}),
            "mlaunch sh -c 'echo $RANK' '' 'it'\\''s' 'a b'");
}

}  // namespace
}  // namespace strata::launcher
