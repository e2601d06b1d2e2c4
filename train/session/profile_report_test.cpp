// Checks what the report makes of measured times: bounds by kind, one row per operation and shape,
// losses in order.
#include "train/session/profile_report.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace strata::train {
namespace {

using kernels::TensorType;
using runtime::Instruction;
using runtime::Queue;

machine::Machine rates() {
  machine::Machine machine;
  machine.device.capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  machine.device.fp32_flops = machine::measured(1e12);
  machine.device.bf16_flops = machine::measured(1e13);
  machine.device.bytes_per_second = machine::measured(1e11);
  machine.peer_rate = machine::assumed(1e9);
  return machine;
}

Instruction instruction(const char* operation, Queue queue, std::vector<TensorType> inputs,
                        TensorType output) {
  Instruction in;
  in.operation = &kernels::find_operation(operation);
  in.queue = queue;
  for (const TensorType& type : inputs)
    in.inputs.push_back({.type = type, .bytes = type.span_bytes()});
  in.outputs.push_back({.type = output, .bytes = output.span_bytes()});
  return in;
}

TEST(ProfileReport, ShapesAreShort) {
  const TensorType a(DType::bf16, {512, 768}), b(DType::bf16, {2304, 768}), u(DType::u8, {64});
  EXPECT_EQ(shape_of(instruction("linear", Queue::compute, {a, b}, {DType::bf16, {512, 2304}})),
            "bf16 [512,768] [2304,768] [512,2304]");
  EXPECT_EQ(shape_of(instruction("add", Queue::compute, {a, a, u}, a)),
            "bf16 [512,768] x2, uint8 [64], bf16 [512,768]");
}

/// Two layers of a product that takes three times its bound, a copy at its bound, and a gather that
/// runs at the same time.
class Profiled {
 public:
  Profiled() : recorder(runtime::TraceOf::device, 2) {
    program.name = "train.only";
    const TensorType big(DType::f32, {1000, 1000}), small(DType::f32, {1000});
    for (int layer = 0; layer < 2; ++layer) {
      program.instructions.push_back(instruction("linear", Queue::compute, {big, big}, big));
      program.instructions.back().demand = {.flops = 2e9, .bytes = 12e6};  // 2 ms
    }
    program.instructions.push_back(instruction("copy", Queue::compute, {small}, small));
    program.instructions.back().demand.bytes = 1e8;  // 1 ms
    program.instructions.push_back(instruction("copy", Queue::communication, {big}, big));
    program.instructions.back().demand = {.resource = machine::Resource::peers,
                                          .moved_bytes = 4'000'000};  // 4 ms
    for (std::int64_t step = 0; step < 5; ++step) {
      recorder.starting(program, step);
      const std::int64_t start = step * 20'000'000;
      recorder.executed(program, 0, start, start + 6'000'000);
      recorder.executed(program, 1, start + 6'000'000, start + 12'000'000);
      recorder.executed(program, 2, start + 12'000'000, start + 13'000'000);
      recorder.executed(program, 3, start, start + 5'000'000);
    }
  }
  runtime::Program program;
  runtime::ProfileRecorder recorder;
};

TEST(ProfileReport, RowsAreOperationsAndShapesLargestLossFirst) {
  const Profiled profiled;
  const ProfileReport report = make_report(profiled.recorder, rates());
  EXPECT_EQ(report.steps, 3);
  EXPECT_NEAR(report.step_seconds, (2 * 20e-3 + 13e-3) / 3, 1e-9);
  ASSERT_EQ(report.rows.size(), 3u);
  const ProfileRow& first = report.rows[0];
  EXPECT_EQ(first.operation, "linear");
  EXPECT_DOUBLE_EQ(first.count, 2);
  EXPECT_NEAR(first.seconds, 12e-3, 1e-12);
  EXPECT_NEAR(first.bound_seconds, 4e-3, 1e-12);
  EXPECT_NEAR(first.loss_seconds(), 8e-3, 1e-12);
  EXPECT_EQ(report.rows[1].queue, Queue::communication);
  EXPECT_NEAR(report.rows[1].loss_seconds(), 1e-3, 1e-12);
  EXPECT_NEAR(report.rows[2].loss_seconds(), 0, 1e-12);
}

TEST(ProfileReport, TheFileIsJsonAndTheTableFitsAScreen) {
  const Profiled profiled;
  const ProfileReport report = make_report(profiled.recorder, rates());
  const JsonValue file = parse_json(
      profile_file("a \"device\"", {to_json(report, 0), to_json(report, 1)}), "profile.json", {});
  EXPECT_EQ(file.at("device").as_string(), "a \"device\"");
  ASSERT_EQ(file.at("ranks").size(), 2);
  const JsonValue row = file.at("ranks").elements()[1].at("rows").elements()[0];
  EXPECT_DOUBLE_EQ(row.at("ratio").as_number(), 3);
  EXPECT_EQ(row.at("shape").as_string(), "fp32 [1000,1000] x3");
  const std::string text = describe(report, 2);
  EXPECT_NE(text.find("profile of steps 3 to 5, 17.67 ms each: compute busy 73.6 %, communication"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    8.00 ms    12.00 ms  67.9 %      3.00       2  linear fp32"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("copy fp32 [1000] x2"), std::string::npos) << "more rows than asked for";
}

}  // namespace
}  // namespace strata::train
