#include "train/doctor/hosts_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Level = Finding::Level;

HostFacts host(const std::string& name) {
  return {.name = name,
          .address = "10.0.0." + std::to_string(name.front() - 'a'),
          .interface = "eth0",
          .port = 40000,
          .no_port = "",
          .programs = "/opt/strata/bin",
          .build = {{"mlaunch", "0011"}, {"train", "0022"}},
          .processor = "Some CPU",
          .cores = 8,
          .available_bytes = std::int64_t{4} << 30,
          .locked_bytes = -1,
          .shared_memory_bytes = std::int64_t{2} << 30,
          .gpus = {"H100, driver 1", "H100, driver 1"}};
}

HostsReport healthy() {
  HostsReport report{.hosts = {host("a"), host("b"), host("c")}, .links = {}, .output = "/out"};
  for (int i = 0; i < 3; ++i) {
    const int next = (i + 1) % 3, other = (i + 2) % 3;
    report.links.push_back(
        {.farthest = next, .round_trip_seconds = 1e-4, .streams = {{next, 1e9}, {other, 1.1e9}}});
  }
  return report;
}

/// Returns the text of the only finding that is not ok, after its level and word.
std::string wrong_with(const HostsReport& report) {
  constexpr const char* kLevels[] = {"ok", "note", "bad"};
  std::string text;
  for (const Finding& finding : judge(report))
    if (finding.level != Level::ok)
      text += std::string(text.empty() ? "" : "\n") + kLevels[static_cast<int>(finding.level)] +
              " " + finding.what + ": " + finding.text;
  return text;
}

TEST(HostsReport, HealthyHostsAreOk) {
  EXPECT_EQ(wrong_with(healthy()), "");
  const std::string text = to_text(healthy());
  for (const char* part :
       {"10.0.0.1 (eth0)", "4.00 GiB", "unlimited", "2 x H100, driver 1",
        "ok    ports       all hosts reach one another at random ports\n",
        "ok    network     there and back in 0.10 ms at most; 1.00 GB/s to 1.10 GB/s from host",
        "ok    output      /out is one folder on all hosts, and locks hold\n"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("bad")));
  HostsReport without = healthy();
  for (HostFacts& host : without.hosts) host.gpus.clear();
  EXPECT_THAT(to_text(without), HasSubstr("ok    GPUs        no host has one\n"));
}

TEST(HostsReport, WhatIsWrongIsSaidWithItsHostAndWhatToChange) {
  struct Case {
    void (*change)(HostsReport&);
    std::string said;
  };
  const std::vector<Case> cases{
      {[](HostsReport& r) {
         r.hosts[1].build = {{"train", "2"}, {"plan", "3"}};
       },
       "bad strata: b (in /opt/strata/bin), compared with a (in /opt/strata/bin), has no mlaunch, "
       "has another train, has also plan; install the same build"},
      {[](HostsReport& r) { r.hosts[2].programs = "/c"; },
       "note strata: a has /opt/strata/bin; c has /c"},
      {[](HostsReport& r) { r.hosts[1].no_port = "no address"; },
       "bad ports: b: no address; name another network: mlaunch --interface NAME"},
      {[](HostsReport& r) {
         r.links[2].unreached = {{0, "Connection refused"}};
       },
       "bad ports: c does not reach a at 10.0.0.0, port 40000: Connection refused; open TCP ports"},
      {[](HostsReport& r) { r.links[1].round_trip_seconds = 0.02; },
       "note network: from b to c and back takes 20.00 ms"},
      {[](HostsReport& r) { r.links[0].streams[1].bytes_per_second = 1e8; },
       "note network: a sends 0.10 GB/s to c, where 1.00 GB/s is usual"},
      {[](HostsReport& r) { r.links[1].no_file = "host 0's file is not seen there"; },
       "bad output: /out on b: host 0's file is not seen there; a checkpoint is one folder"},
      {[](HostsReport& r) { r.links[1].no_lock = "no lock"; },
       "bad output: /out on b: no lock; mount it with locks"},
      {[](HostsReport& r) { r.output.clear(); }, "note output: not tried; name the run's folder"},
      {[](HostsReport& r) { r.links[1].clock_ahead_seconds = -7200; },
       "note clocks: that of b is 7200.0 s behind a's"},
      {[](HostsReport& r) { r.hosts[1].processor = "Other CPU"; },
       "note processors: a has Some CPU; b has Other CPU"},
      {[](HostsReport& r) { r.hosts[1].gpus = {}; },
       "note GPUs: a has 2 x H100, driver 1; b has none"},
      {[](HostsReport& r) {
         r.hosts[1].gpus = {"H100, driver 1", "L4, driver 1", "H100, driver 1"};
       },
       "note GPUs: a has 2 x H100, driver 1; b has 2 x H100, driver 1, 1 x L4, driver 1"},
      {[](HostsReport& r) { r.hosts[1].locked_bytes = 8 << 20; },
       "note memlock: b allows 8.00 MiB"},
      {[](HostsReport& r) { r.hosts[1].shared_memory_bytes = 1 << 20; },
       "note /dev/shm: b has 1.00 MiB free"},
  };
  for (const Case& one : cases) {
    HostsReport report = healthy();
    one.change(report);
    EXPECT_THAT(wrong_with(report), ::testing::StartsWith(one.said));
  }
}

TEST(HostsReport, TravelsBetweenHosts) {
  HostFacts facts = host("b");
  facts.locked_bytes = 7;
  facts.no_port = "\"why\"";
  const HostFacts read = read_host_facts(to_json(facts));
  EXPECT_EQ(to_json(read), to_json(facts));
  EXPECT_EQ(read.gpus, facts.gpus);
  const HostLinks links{.unreached = {{1, "refused"}},
                        .farthest = 2,
                        .round_trip_seconds = 0.25,
                        .streams = {{2, 1e9}},
                        .clock_ahead_seconds = -3.5,
                        .no_file = "f",
                        .no_lock = "l"};
  const HostLinks again = read_host_links(to_json(links));
  EXPECT_EQ(to_json(again), to_json(links));
  EXPECT_EQ(again.unreached.at(0).why, "refused");
  EXPECT_EQ(again.clock_ahead_seconds, -3.5);
}

}  // namespace
}  // namespace strata::train
