#include "train/engine/device_choices.h"

#include <deque>
#include <vector>

#include "comm/gather_texts.h"

namespace strata::train {
namespace {

/// Stands for an address in an arena that does not exist yet: aligned as it will be, not null.
std::byte* pretended_address(std::int64_t offset_bytes) {
  constexpr std::uintptr_t kBase = std::uintptr_t{1} << 20;
  return reinterpret_cast<std::byte*>(kBase + static_cast<std::uintptr_t>(offset_bytes));
}

/// The calls of all Programs, and the operands that they point to.
class PlannedCalls {
 public:
  explicit PlannedCalls(const compile::StepPrograms& programs) {
    using compile::ProgramKind;
    for (const auto& [key, program] : programs.programs)
      if (key.kind == ProgramKind::train || key.kind == ProgramKind::evaluate ||
          key.kind == ProgramKind::generate)
        add(program);
  }
  [[nodiscard]] const std::vector<kernels::PlannedCall>& calls() const { return calls_; }

 private:
  void add(const runtime::Program& program) {
    for (const runtime::Instruction& in : program.instructions) {
      if (in.collective) continue;
      std::span<std::byte> workspace;
      if (in.workspace)
        workspace = {pretended_address(in.workspace->offset_bytes),
                     static_cast<std::size_t>(in.workspace->bytes)};
      const auto inputs = tensors(in.inputs), outputs = tensors(in.outputs);
      calls_.push_back({in.operation->name, {inputs, outputs, workspace, in.attributes}});
    }
  }

  std::span<const kernels::Tensor> tensors(const std::vector<runtime::Operand>& operands) {
    std::vector<kernels::Tensor>& kept = tensors_.emplace_back();
    for (const runtime::Operand& o : operands)
      kept.push_back({o.type, pretended_address(o.offset_bytes)});
    return kept;
  }

  std::vector<kernels::PlannedCall> calls_;
  std::deque<std::vector<kernels::Tensor>> tensors_;
};

}  // namespace

void agree_on_choices(kernels::Device& device, comm::Communicator& host,
                      const compile::StepPrograms& programs, const std::string& known,
                      const std::string& file, kernels::ChooseBy by, const Beat& beat) {
  const PlannedCalls planned(programs);
  const auto choose = [&] {
    for (const kernels::PlannedCall& call : planned.calls()) {
      device.choose({&call, 1}, by);
      beat();
    }
  };
  std::string chosen;
  if (host.rank() == 0) {
    device.use_choices(known, file);
    choose();
    chosen = device.choices();
  }
  if (host.size() == 1) return;
  chosen = comm::gather_texts(host, chosen)[0];
  if (host.rank() == 0) return;
  device.use_choices(chosen, "the choices of rank 0");
  choose();
}

}  // namespace strata::train
