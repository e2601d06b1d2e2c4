#include "comm/nccl/nccl_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/error.h"

namespace strata::comm {
namespace {

class NcclEnvironment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static std::string sockets() {
    const char* value = std::getenv("NCCL_SOCKET_IFNAME");
    return value == nullptr ? "unset" : value;
  }

 private:
  static void clear() {
    ::unsetenv("NCCL_COMM_ID");
    ::unsetenv("NCCL_SOCKET_IFNAME");
  }
};

TEST_F(NcclEnvironment, SocketsUseTheInterfaceOfTheRun) {
  prepare_nccl_environment("");
  EXPECT_EQ(sockets(), "unset");
  prepare_nccl_environment("eth1");
  EXPECT_EQ(sockets(), "=eth1");
}

TEST_F(NcclEnvironment, WhatTheUserSetStays) {
  ::setenv("NCCL_SOCKET_IFNAME", "ib", 1);
  prepare_nccl_environment("eth1");
  EXPECT_EQ(sockets(), "ib");
}

TEST_F(NcclEnvironment, RefusesAnAddressToMeetAt) {
  ::setenv("NCCL_COMM_ID", "10.0.0.1:4000", 1);
  try {
    prepare_nccl_environment("");
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "NCCL_COMM_ID=10.0.0.1:4000 names an address at which ranks would meet, but the "
                 "ranks of this run find one another without it; unset NCCL_COMM_ID");
  }
}

}  // namespace
}  // namespace strata::comm
