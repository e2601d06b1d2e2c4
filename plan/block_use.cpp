#include "plan/block_use.h"

#include <algorithm>
#include <map>

#include "machine/demand.h"
#include "runtime/program/memory_timeline.h"
#include "zero/micro_step.h"

namespace strata::plan {
namespace {

using runtime::Instruction;
using runtime::Pass;
using runtime::Program;
using runtime::Queue;

class Measuring {
 public:
  Measuring(const machine::Machine& machine, const std::vector<std::string>& blocks)
      : machine_(machine) {
    use_.blocks.resize(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) index_[blocks[b]] = static_cast<int>(b);
  }

  StepUse run(const compile::StepPrograms& programs) {
    for (const auto& [key, program] : programs.programs) {
      const bool is_step = key.is_train() || (key.kind == compile::ProgramKind::snapshot &&
                                              key.shorter_sequence == 0);
      if (!is_step) continue;
      add_bytes(program);
      if (!key.is_train()) continue;
      const int runs = zero::runs_per_step(programs.settings.plan, key.micro_step);
      use_.runs += runs;
      for (const Instruction& in : program.instructions) add_time(program, in, runs);
    }
    divide_times();
    use_.persistent_bytes = programs.persistent.bytes(runtime::Tier::device);
    return std::move(use_);
  }

 private:
  /// Returns the block of a computation of the forward or backward pass; -1 for all else.
  [[nodiscard]] int block_of(const Program& program, const Instruction& in) const {
    if (in.queue != Queue::compute || in.pass == Pass::update) return -1;
    const auto at = index_.find(program.blocks[static_cast<std::size_t>(in.block)]);
    return at == index_.end() ? -1 : at->second;
  }

  void add_bytes(const Program& program) {
    const runtime::LiveBytes live = runtime::MemoryTimeline(program).live_bytes();
    const int count = static_cast<int>(use_.blocks.size());
    int position = 0;  // forward through the blocks, and backward again
    for (std::size_t i = 0; i < live.size(); ++i) {
      const Instruction& in = program.instructions[i];
      if (const int block = block_of(program, in); block >= 0)
        position = in.pass == Pass::forward ? block : 2 * count - 1 - block;
      const bool is_forward = position < count;
      BlockUse& use =
          use_.blocks[static_cast<std::size_t>(is_forward ? position : 2 * count - 1 - position)];
      std::int64_t& most = is_forward ? use.forward_bytes : use.backward_bytes;
      most = std::max(most, live[i][static_cast<std::size_t>(runtime::Tier::device)]);
    }
  }

  void add_time(const Program& program, const Instruction& in, int runs) {
    const std::int64_t ns = runs * machine::foreseen_ns(machine_, in.demand);
    if (in.queue == Queue::download) download_ns_ += ns;
    if (in.queue == Queue::upload) upload_ns_ += ns;
    use_.has_transfers = use_.has_transfers || in.queue != Queue::compute;
    const int block = block_of(program, in);
    if (block < 0) return;
    compute_ns_ += ns;
    BlockUse& use = use_.blocks[static_cast<std::size_t>(block)];
    (in.pass == Pass::forward ? use.forward_ns : use.backward_ns) += ns;
  }

  void divide_times() {
    const std::int64_t runs = std::max<std::int64_t>(1, use_.runs);
    for (BlockUse& use : use_.blocks) {
      use.forward_ns /= runs;
      use.backward_ns /= runs;
    }
    const auto share = [&](std::int64_t ns) {
      return compute_ns_ > 0 ? static_cast<double>(ns) / static_cast<double>(compute_ns_) : 0.0;
    };
    use_.download_share = share(download_ns_);
    use_.upload_share = share(upload_ns_);
  }

  const machine::Machine& machine_;
  std::map<std::string, int> index_;
  std::int64_t compute_ns_ = 0, download_ns_ = 0, upload_ns_ = 0;
  StepUse use_;
};

}  // namespace

StepUse measure_blocks(const compile::StepPrograms& programs, const machine::Machine& machine,
                       const std::vector<std::string>& blocks) {
  return Measuring(machine, blocks).run(programs);
}

}  // namespace strata::plan
