#include "runtime/execute/transfer_tally.h"

#include <algorithm>

#include "runtime/program/arena_alignment.h"

namespace strata::runtime {

std::int64_t bytes_between_tiers(const Instruction& in) {
  switch (in.queue) {
    case Queue::upload:
    case Queue::download:
      return in.demand.moved_bytes;
    case Queue::disk_read:
    case Queue::disk_write:
      return room_of(in.demand.moved_bytes, Tier::disk);
    case Queue::compute:
    case Queue::communication:
    case Queue::host:
      break;
  }
  return 0;
}

void TransferTally::begin_program(const Program& program, std::int64_t) {
  const auto known = std::ranges::find(programs_, program.name, &ProgramTally::program);
  if (known != programs_.end()) {
    ++known->runs;
    return;
  }
  ProgramTally fresh{.program = program.name, .runs = 1};
  for (const Instruction& in : program.instructions)
    (in.predicate ? fresh.conditional : fresh.always)[static_cast<std::size_t>(in.queue)] +=
        bytes_between_tiers(in);
  programs_.push_back(std::move(fresh));
}

void TransferTally::copied(const Program& program, int instruction) {
  const Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
  copied_[static_cast<std::size_t>(in.queue)].fetch_add(bytes_between_tiers(in),
                                                        std::memory_order_relaxed);
}

QueueBytes TransferTally::copied_bytes() const {
  QueueBytes bytes{};
  for (std::size_t q = 0; q < bytes.size(); ++q) bytes[q] = copied_[q].load();
  return bytes;
}

}  // namespace strata::runtime
