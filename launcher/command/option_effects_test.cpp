#include "launcher/command/option_effects.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"

namespace strata::launcher {
namespace {

using Words = std::vector<std::string>;

std::string refusal_with(const Words& where, const Words& option) {
  Words words = where;
  words.insert(words.end(), option.begin(), option.end());
  words.emplace_back("train");
  try {
    (void)parse_options(words, {.variables = {{"SLURM_JOB_ID", "7"}}});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

const Words kAlone{};
const Words kMpirun{"--launcher", "mpi"};
const Words kListed{"-H", "localhost,b"};
const Words kJoining{"--nnodes",      "2", "--node-rank",  "1", "--master-addr", "a",
                     "--master-port", "1", "--run-secret", "s"};
const Words kRange{"-H", "localhost,b", "--nnodes", "1:2"};

TEST(OptionEffects, WhatDoesNothingIsRefusedByItsName) {
  struct Case {
    Words where, option;
    std::string advice;
  };
  const std::vector<Case> cases{
      {kMpirun, {"--max-restarts", "2"}, "leave --launcher out, or name hosts"},
      {kMpirun, {"--hang-timeout", "60"}, "leave --launcher out"},
      {kMpirun, {"--grace", "60"}, "leave --launcher out"},
      {kMpirun, {"--web", "0"}, "leave --launcher out"},
      {kMpirun, {"--requeue"}, "leave --launcher out"},
      {kMpirun, {"--log-dir", "d"}, "--output-filename"},
      {kMpirun, {"--master-port", "1234"}, "-x MASTER_PORT=PORT"},
      {kMpirun, {"--master-addr", "localhost"}, "-x MASTER_ADDR=ADDRESS"},
      {kMpirun, {"--run-secret", "s"}, "--nnodes, -H or --hostfile"},
      {kMpirun, {"--rejoin", "9"}, "--nnodes, -H or --hostfile"},
      {kAlone, {"--rejoin", "9"}, "--nnodes, -H or --hostfile"},
      {kAlone, {"--run-secret", "s"}, "--nnodes, -H or --hostfile"},
      {kAlone, {"--node-rank", "0"}, "--nnodes does not say"},
      {kAlone, {"--agent"}, "also give --nnodes N"},
      {kAlone, {"--elastic", "1:2"}, "also give --nnodes MIN:MAX"},
      {kAlone, {"--launcher-args", "-v"}, "goes with --launcher mpi or slurm"},
      {kListed, {"--agent"}, "leave it out"},
      {kListed, {"--standalone"}, "says that there is one"},
      {kListed, {"--rdzv-endpoint", "a:1"}, "--master-addr and --master-port"},
      {kListed, {"--elastic", "1:2"}, "also give --nnodes MIN:MAX"},
      {kMpirun, {"--interface", "eth1"}, "--mca btl_tcp_if_include"},
      {kAlone, {"--interface", "eth1"}, "--nnodes, -H or --hostfile"},
      {kJoining, {"--launcher-args", "-v"}, "goes with --launcher mpi or slurm"},
      {kJoining, {"--elastic", "1:2"}, "also give --nnodes MIN:MAX"},
  };
  for (const Case& one : cases) {
    const std::string text = refusal_with(one.where, one.option);
    EXPECT_EQ(text.rfind(one.option.front(), 0), 0U) << one.option.front() << ": " << text;
    EXPECT_NE(text.find(one.advice), std::string::npos) << text;
  }
}

TEST(OptionEffects, WhatDoesSomethingIsTaken) {
  const std::vector<std::pair<Words, std::vector<Words>>> cases{
      {kAlone,
       {{"--max-restarts", "2"},
        {"--hang-timeout", "0"},
        {"--log-dir", "d"},
        {"--web", "0"},
        {"--requeue"},
        {"--master-port", "1234"},
        {"--master-addr", "localhost"},
        {"--standalone"},
        {"--nnodes", "1", "--node-rank", "0"},
        {"--nnodes", "1", "--run-secret", "s"},
        {"--no-prefix"}}},
      {kMpirun, {{"--no-prefix"}, {"--launcher-args", "-v"}, {"--include", "localhost:0"}}},
      {kListed,
       {{"--rejoin", "9"},
        {"--run-secret", "s"},
        {"--web", "0"},
        {"--include", "localhost:0,2@b"},
        {"--exclude", "b"},
        {"--interface", "eth1"},
        {"--log-dir", "d"}}},
      {kRange, {{"--elastic", "1:2"}, {"--rejoin", "9"}}},
      // The same command is typed on each host, what host 0 alone obeys, too.
      {kJoining, {{"--max-restarts", "2"}, {"--hang-timeout", "9"}, {"--web", "0"}, {"--agent"}}},
  };
  for (const auto& [where, options] : cases)
    for (const Words& option : options)
      EXPECT_EQ(refusal_with(where, option), "") << option.front();
}

TEST(OptionEffects, EachIsToldInALineOfItsOwn) {
  const std::string text =
      refusal_with(kMpirun, {"--grace", "5", "--max_restarts=1", "--log-dir", "d"});
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_NE(text.find("--max_restarts 1 has no effect"), std::string::npos) << text;
}

TEST(OptionEffects, KubeflowMaySayThatThereAreHosts) {
  EXPECT_NO_THROW(
      (void)parse_options({"--run-secret", "s", "train"}, {.variables = {{"PET_NNODES", "1"}}}));
}

}  // namespace
}  // namespace strata::launcher
