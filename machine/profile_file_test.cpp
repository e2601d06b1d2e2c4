#include "machine/profile_file.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::machine {
namespace {

Profile some_profile() {
  return {"a processor, 2 threads",
          OperationTimes({{0x1234, "linear", Resource::device, DType::f32, 1000, 900, {2.5, 0.25}},
                          {0xffffffffffffffff, "norm", Resource::host, DType::bf16, 7, 9}}),
          {0x1234}};
}

std::string refusal(std::string text) {
  try {
    read_profile(text, "p.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

std::string with(std::string_view from, std::string_view to) {
  std::string text = to_json(some_profile());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ProfileFile, IsReadBackAsItWasWritten) {
  EXPECT_EQ(read_profile(to_json(some_profile()), "p.json"), some_profile());
  EXPECT_EQ(read_profile(to_json(Profile{}), "p.json"), Profile{});
}

TEST(ProfileFile, FaultsAreNamedWithFileLineAndPath) {
  const auto expect = [](const std::string& text, const std::string& words) {
    EXPECT_NE(refusal(text).find(words), std::string::npos) << refusal(text);
  };
  expect(with("\"ns\": 1000", "\"ns\": 0"), "times[0].ns: integer 0, expected nanoseconds from 1");
  expect(with("\"ns\": 1000", "\"ns\": -5"), "expected nanoseconds from 1");
  expect(with("0000000000001234", "12"), "times[0].signature: string \"12\", expected 16");
  expect(with("0000000000001234", "0000000000000000"), "expected 16 hexadecimal digits");
  expect(with("\"bf16\"", "\"int8\""), "times[1].type");
  expect(with("\"host\"", "\"moon\""), "times[1].resource: string \"moon\"");
  expect(with("\"version\": 4", "\"version\": 5"), "expected version 4");
  expect(with("\"version\": 4", "\"version\": 3"), "expected version 4");
  expect(with("\"flops\": 2.5", "\"flops\": -1"), "times[0].flops");
  expect(with("\"bytes\": 0.25", "\"bytes\": 1e22"), "times[0].bytes");
  expect(with("\"steps\"", "\"guess\""),
         "times[0].source: string \"guess\", expected \"rehearsal\" or \"steps\"");
  expect(with("\"guess_ns\"", "\"guess\""), "times[0].guess: unknown key");
  expect("{", "p.json");
}

TEST(ProfileFile, WhatStepsShowedStaysUnlessAllIsMeasuredAnew) {
  const auto time = [](std::uint64_t signature, std::int64_t ns) {
    return OperationTime{signature, "linear", Resource::device, DType::f32, ns, 900};
  };
  Profile profile{"a processor", OperationTimes({time(1, 10), time(2, 20)})};
  profile.add_observed(OperationTimes({time(2, 25), time(3, 35)}));
  EXPECT_EQ(profile.observed, (std::set<std::uint64_t>{2, 3}));
  profile.add_rehearsed(OperationTimes({time(1, 11), time(2, 21), time(4, 41)}), false);
  EXPECT_EQ(profile.times, OperationTimes({time(1, 11), time(2, 25), time(3, 35), time(4, 41)}));
  profile.add_rehearsed(OperationTimes({time(2, 22)}), true);
  EXPECT_EQ(profile.times.find(2), 22);
  EXPECT_EQ(profile.observed, std::set<std::uint64_t>{3});
  profile.add_observed(OperationTimes({time(3, 36)}));
  EXPECT_EQ(profile.times.find(3), 36) << "the last steps count";
}

}  // namespace
}  // namespace strata::machine
