// Programs of a few instructions with given times, for tests of what runs when.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/simulator/instruction_work.h"

namespace strata::runtime {

/// An instruction that computes nothing.
inline Instruction hand_made(Queue queue, std::string label, std::vector<std::int32_t> waits = {},
                             std::uint32_t border_waits = 0) {
  Instruction in;
  in.operation = &kernels::find_operation("copy");
  in.queue = queue;
  in.label = std::move(label);
  in.waits = std::move(waits);
  in.border_waits = border_waits;
  return in;
}

/// The bit of a queue in Instruction::border_waits.
constexpr std::uint32_t bit(Queue queue) { return 1U << static_cast<unsigned>(queue); }

inline Program hand_made(std::string name, std::vector<Instruction> instructions) {
  Program program;
  program.name = std::move(name);
  program.blocks = {"all"};
  program.instructions = std::move(instructions);
  return program;
}

/// Times by label.
class HandMadeTimes final : public InstructionTimes {
 public:
  explicit HandMadeTimes(std::map<std::string, InstructionWork> work) : work_(std::move(work)) {}
  [[nodiscard]] InstructionWork work_of(const Program& program, int instruction) const override {
    return work_.at(program.instructions[static_cast<std::size_t>(instruction)].label);
  }

 private:
  std::map<std::string, InstructionWork> work_;
};

}  // namespace strata::runtime
