#include "launcher/wire/run_secret.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "core/error.h"

namespace strata::launcher {
namespace {

const std::string kCertificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const std::string kKey = "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n";

RunSecret sample() { return {std::string(64, 'a'), kCertificate, kKey}; }

std::string refusal(const std::string& text) {
  try {
    (void)parse_run_secret(text, "the file s");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RunSecret, WhatIsWrittenIsRead) {
  EXPECT_EQ(parse_run_secret(format_run_secret(sample()), "s"), sample());
  RunSecret for_agents = sample();
  for_agents.key.clear();
  EXPECT_EQ(parse_run_secret(format_run_secret(for_agents), "s"), for_agents);
}

TEST(RunSecret, AWrongLineIsNamed) {
  const std::string good = format_run_secret(sample());
  EXPECT_NE(refusal("").find("the file s is no secret of a run: line 1 should be"),
            std::string::npos);
  EXPECT_NE(refusal("strata-run-secret 2\n").find("line 1"), std::string::npos);
  EXPECT_NE(refusal("strata-run-secret 1\ntoken abc\n").find("line 2 should be the token with 64"),
            std::string::npos);
  EXPECT_NE(refusal("strata-run-secret 1\ntoken " + std::string(63, 'a') + "G\n").find("line 2"),
            std::string::npos);
  EXPECT_NE(refusal(good.substr(0, good.size() - 1)).find("line 8"), std::string::npos);
  EXPECT_NE(refusal(good + "more\n").find("line 9 should be the end"), std::string::npos);
  EXPECT_NE(refusal("strata-run-secret 1\ntoken " + std::string(64, 'a') + "\n" + kKey)
                .find("line 3 should be \"-----BEGIN CERTIFICATE-----\""),
            std::string::npos);
}

class RunSecretFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = [] {
    std::string name = (std::filesystem::temp_directory_path() / "strata-secret-XXXXXX").string();
    return std::string(::mkdtemp(name.data()));
  }();
  std::string path_ = folder_ + "/secret";
};

TEST_F(RunSecretFile, IsForItsOwnerAlone) {
  write_run_secret(path_, sample());
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(read_run_secret(path_), sample());
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  EXPECT_THROW((void)read_run_secret(path_), ConfigError);
}

TEST_F(RunSecretFile, AnExistingFileIsKept) {
  write_run_secret(path_, sample());
  RunSecret other = sample();
  other.token = std::string(64, 'b');
  EXPECT_THROW(write_run_secret(path_, other), InvalidArgument);
  EXPECT_EQ(read_run_secret(path_), sample());
}

TEST_F(RunSecretFile, AFileThatCannotBeMadeOrWrittenIsNoWrongCommandLine) {
  EXPECT_THROW(write_run_secret(path_ + "/file", sample()), HostError);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit little { .rlim_cur = 0, .rlim_max = before.rlim_max };
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  EXPECT_THROW(write_run_secret(path_, sample()), IoError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)::signal(SIGXFSZ, handler);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RunSecretFile, AMissingFileIsSaidToBe) {
  EXPECT_THROW((void)read_run_secret(path_), HostError);
}

}  // namespace
}  // namespace strata::launcher
