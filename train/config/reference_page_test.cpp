#include "train/config/reference_page.h"

#include <gtest/gtest.h>

#include "core/file.h"

namespace strata::train {
namespace {

TEST(ConfigurationPage, EndsWithTheTablesThatTheProgramObeys) {
  const std::string page = read_whole_file(STRATA_CONFIGURATION_PAGE, 1 << 20);
  const std::string tables = configuration_reference();
  const std::size_t begin = page.find("## JSON keys");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_TRUE(page.substr(begin) == tables)
      << "run build/bin/config_reference " << STRATA_CONFIGURATION_PAGE;
}

}  // namespace
}  // namespace strata::train
