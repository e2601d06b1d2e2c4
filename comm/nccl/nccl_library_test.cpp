// Tests that need the library but no device.
#include "comm/nccl/nccl_library.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::comm {
namespace {

TEST(NcclLibrary, HasTheFunctionsThatCollectivesNeed) {
  try {
    const NcclLibrary library(cuda::library_environment());
    int version = 0;
    EXPECT_EQ(library.functions().get_version(&version), ncclSuccess);
    EXPECT_GE(version, 21800) << library.path();
    EXPECT_STRNE(library.functions().get_error_string(ncclRemoteError), "");
  } catch (const HostError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find(" lacks "), std::string::npos) << message;
    GTEST_SKIP() << message;
  }
}

TEST(NcclLibrary, PrintsVersionsAsPeopleWriteThem) {
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(nccl_version_text(21805), "2.18.5");
}

}  // namespace
}  // namespace strata::comm
