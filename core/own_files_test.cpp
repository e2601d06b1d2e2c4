#include "core/own_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata {
namespace {

TEST(OwnFiles, HashesProgramsAndModulesThatLieBesideThisOne) {
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").filename();
  const std::string module = own_directory() + "/libstrata_of_own_files_test.so";
  const auto hash_with = [&](const char* content) {
    std::ofstream(module) << content;
    const auto hashes = hashes_of_installed({own, "strata-no-such-program"});
    EXPECT_EQ(hashes.at(own), hash_of_program());
    EXPECT_FALSE(hashes.contains("strata-no-such-program"));
    return hashes.at("libstrata_of_own_files_test.so");
  };
  const std::uint64_t one = hash_with("one build"), other = hash_with("another");
  EXPECT_NE(one, other);
  EXPECT_EQ(hash_with("one build"), one);
  std::filesystem::remove(module);
  EXPECT_FALSE(hashes_of_installed({}).contains("libstrata_of_own_files_test.so"));
}

TEST(OwnFiles, AFileThatCannotBeLookedAtIsNamedWithItsReason) {
  const std::string long_name(300, 'x');
  const std::string refused = message_of<HostError>([&] {
    (void)module_entry({.file = long_name,
                        .entry = "entry",
                        .purpose = "a test",
                        .if_missing = "make it",
                        .if_refused = "mend it"});
  });
  EXPECT_NE(refused.find("/" + long_name + " (File name too long), "), std::string::npos);
  EXPECT_TRUE(refused.ends_with(long_name + " (File name too long); make it")) << refused;
  EXPECT_EQ(message_of<HostError>([&] { (void)hashes_of_installed({long_name}); }),
            "cannot look at " + own_directory() + "/" + long_name + ": File name too long");
}

}  // namespace
}  // namespace strata
