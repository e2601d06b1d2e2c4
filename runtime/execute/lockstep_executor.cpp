// The executor that checks a device: each instruction runs on the device and, with the device's
// inputs, on the CPU, and the results are compared.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/math/float16.h"
#include "kernels/ops/twin_bounds.h"
#include "runtime/execute/bound_instruction.h"
#include "runtime/execute/lockstep.h"

namespace strata::runtime {
namespace {

using kernels::Tensor;

struct AlignedDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};
using Buffer = std::unique_ptr<std::byte[], AlignedDelete>;

Buffer make_buffer(std::int64_t bytes) {
  return Buffer(static_cast<std::byte*>(::operator new[](
      static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), std::align_val_t{64})));
}

bool overlap(const Operand& a, const Operand& b) {
  return a.tier == b.tier && a.offset_bytes < b.offset_bytes + b.bytes &&
         b.offset_bytes < a.offset_bytes + a.bytes;
}

/// Returns element `index` of a row as a number.
double number(DType dtype, const std::byte* row, std::int64_t index) {
  const auto load = [&](auto type) {
    std::memcpy(&type, row + index * static_cast<std::int64_t>(sizeof type), sizeof type);
    return type;
  };
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(load(float{}));
    case DType::f64:
      return load(double{});
    case DType::bf16:
      return static_cast<double>(kernels::bf16_to_f32(load(std::uint16_t{})));
    case DType::f16:
      return static_cast<double>(kernels::f16_to_f32(load(std::uint16_t{})));
    case DType::i32:
      return static_cast<double>(load(std::int32_t{}));
    case DType::i64:
      return static_cast<double>(load(std::int64_t{}));
    case DType::u8:
      return static_cast<double>(load(std::uint8_t{}));
    case DType::i16:
      return static_cast<double>(load(std::int16_t{}));
  }
  return 0;
}

struct Difference {
  double relative = 0;       ///< distance in L2 norms; infinite if one side alone is finite
  std::int64_t unequal = 0;  ///< number of elements with different bits
  std::int64_t first = -1;   ///< index of the first of them, row-major
  double device_value = 0, cpu_value = 0;  ///< values at `first`
};

Difference compare(const Tensor& device, const Tensor& cpu) {
  Difference difference;
  const std::int64_t size = size_of(cpu.dtype());
  double squares = 0, distance = 0;
  bool one_sided = false;
  for (std::int64_t r = 0; r < cpu.rows(); ++r) {
    const std::byte* a = device.data + r * device.row_stride() * size;
    const std::byte* b = cpu.data + r * cpu.row_stride() * size;
    const bool same = std::memcmp(a, b, static_cast<std::size_t>(cpu.cols() * size)) == 0;
    for (std::int64_t c = 0; c < cpu.cols(); ++c) {
      const double y = number(cpu.dtype(), b, c);
      if (std::isfinite(y)) squares += y * y;
      if (same || std::memcmp(a + c * size, b + c * size, static_cast<std::size_t>(size)) == 0)
        continue;
      const double x = number(cpu.dtype(), a, c);
      if (std::isnan(x) && std::isnan(y)) continue;  // processors may make different NaNs
      if (difference.unequal++ == 0) {
        difference.first = r * cpu.cols() + c;
        difference.device_value = x;
        difference.cpu_value = y;
      }
      if (!std::isfinite(x) || !std::isfinite(y))
        one_sided = one_sided || !(x == y);
      else
        distance += (x - y) * (x - y);
    }
  }
  if (one_sided)
    difference.relative = INFINITY;
  else if (distance > 0)
    difference.relative = squares > 0 ? std::sqrt(distance / squares) : INFINITY;
  return difference;
}

class LockstepExecutor final : public Executor {
 public:
  LockstepExecutor(ExecutorParts parts, kernels::Device& device, kernels::CpuDevice& cpu,
                   LockstepReport& report)
      : parts_(std::move(parts)),
        device_(device),
        cpu_(cpu),
        report_(report),
        stream_(device.make_stream()) {
    for (int t = 0; t < kTiers; ++t)
      if (const Arena* arena = parts_.arenas[t]) twins_[t] = make_buffer(arena->bytes());
  }

  int load(Program program) override {
    Loaded loaded;
    for (const Instruction& in : program.instructions) {
      if (in.queue == Queue::host)
        throw ConfigError(
            "--check-device runs one instruction after another, and the Plan has the "
            "host update optimizer state (instruction " +
            in.label + "); leave it out");
      loaded.bound.push_back(
          bind_instruction(program, in, parts_, device_.kernels(), device_.backend()));
      if (!in.collective && kernels::cpu_kernels().find(in.operation->name) == nullptr)
        throw InternalError("the CPU has no kernel for operation '" +
                            std::string(in.operation->name) + "' (instruction " + in.label + ")");
    }
    loaded.program = std::move(program);
    loaded_.push_back(std::make_unique<Loaded>(std::move(loaded)));
    return static_cast<int>(loaded_.size()) - 1;
  }

  [[nodiscard]] const Program& program(int handle) const override {
    return loaded_[static_cast<std::size_t>(handle)]->program;
  }

  RunNumber start(int handle, std::int64_t step) override {
    if (error_) std::rethrow_exception(error_);
    Loaded& loaded = *loaded_[static_cast<std::size_t>(handle)];
    device_.bind_thread();
    for (Observer* observer : parts_.observers) {
      observer->starting(loaded.program, step);
      observer->begin_program(loaded.program, step);
    }
    try {
      for (std::size_t i = 0; i < loaded.bound.size(); ++i) check(loaded, i);
    } catch (const std::exception& error) {
      error_ = std::current_exception();
      parts_.communicators.abort(error.what(), ExitCode::internal);
      throw;
    }
    return runs_++;
  }

  void wait_inputs_read(RunNumber) override {}
  void wait(RunNumber) override {}
  void wait_all() override {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Loaded {
    Program program;
    std::vector<BoundInstruction> bound;
  };

  std::byte* device_memory(const Operand& o) const {
    return parts_.arenas[static_cast<int>(o.tier)]->base() + o.offset_bytes;
  }
  std::byte* twin_memory(const Operand& o) const {
    return twins_[static_cast<int>(o.tier)].get() + o.offset_bytes;
  }
  void copy_to_twin(const Operand& o) const {
    if (o.bytes > 0) device_.copy_now(twin_memory(o), device_memory(o), o.bytes);
  }

  void check(Loaded& loaded, std::size_t index) {
    const Instruction& in = loaded.program.instructions[index];
    const BoundInstruction& bound = loaded.bound[index];
    for (Observer* observer : parts_.observers)
      observer->begin(loaded.program, static_cast<int>(index));
    if (in.collective) {
      bound.communicator->run(*stream_, *in.collective, bound.inputs[0].data, bound.outputs[0].data,
                              bound.workspace);
      device_.synchronize(*stream_);
    } else {
      prepare(in);
      run_on_cpu(in);
      bound.kernel(*stream_,
                   {bound.inputs, bound.outputs, bound.workspace, in.attributes, bound.predicate});
      device_.synchronize(*stream_);
      for (const Operand& out : in.outputs) compare_output(loaded.program, in, out);
    }
    for (Observer* observer : parts_.observers)
      observer->end(loaded.program, static_cast<int>(index));
  }

  /// Copies inputs to the twin. Outputs that hold nothing yet are poisoned on both sides, so that
  /// an element that one side forgets to write differs.
  void prepare(const Instruction& in) {
    for (const Operand& o : in.outputs) {
      const bool holds_something =
          in.predicate ||
          std::ranges::any_of(in.inputs, [&](const Operand& input) { return overlap(input, o); });
      if (holds_something) {
        copy_to_twin(o);
      } else if (o.bytes > 0 && o.type.contiguous()) {
        // The twin's memory at the same place serves as the source.
        std::memset(twin_memory(o), 0xFF, static_cast<std::size_t>(o.bytes));
        device_.copy_now(device_memory(o), twin_memory(o), o.bytes);
      } else {
        copy_to_twin(o);  // the bytes between its rows belong to other values
      }
    }
    for (const Operand& o : in.inputs) copy_to_twin(o);
    if (in.predicate) copy_to_twin(*in.predicate);
  }

  void run_on_cpu(const Instruction& in) {
    if (in.predicate) {
      std::uint32_t holds = 0;
      std::memcpy(&holds, twin_memory(*in.predicate), sizeof holds);
      if (holds == 0) return;
    }
    std::vector<Tensor> inputs, outputs;
    kernels::Types from, to;
    for (const Operand& o : in.inputs) {
      inputs.push_back({o.type, twin_memory(o)});
      from.push_back(o.type);
    }
    for (const Operand& o : in.outputs) {
      outputs.push_back({o.type, twin_memory(o)});
      to.push_back(o.type);
    }
    const std::int64_t bytes =
        kernels::workspace_bytes(*in.operation, from, to, in.attributes, cpu_.capabilities());
    const Buffer workspace = make_buffer(bytes);
    kernels::CpuStream stream(cpu_);
    kernels::cpu_kernels().find(in.operation->name)(
        stream,
        {inputs, outputs, {workspace.get(), static_cast<std::size_t>(bytes)}, in.attributes});
  }

  void compare_output(const Program& program, const Instruction& in, const Operand& out) {
    if (out.bytes == 0) return;
    const Buffer result = make_buffer(out.bytes);
    device_.copy_now(result.get(), device_memory(out), out.bytes);
    const Difference difference = compare({out.type, result.get()}, {out.type, twin_memory(out)});
    const double bound =
        kernels::twin_bound(in.operation->name, out.type.dtype,
                            in.inputs.empty() ? out.type.dtype : in.inputs[0].type.dtype);
    LockstepReport::Row& row =
        report_.rows[std::string(in.operation->name) + " " + std::string(name_of(out.type.dtype))];
    ++row.results;
    row.bound = bound;
    row.worst = std::max(row.worst, difference.relative);
    const bool in_bound = bound == 0 ? difference.unequal == 0 : difference.relative <= bound;
    if (in_bound) return;
    char text[512];
    std::snprintf(
        text, sizeof text,
        "program '%s', instruction '%s' (%s): output '%s' %s differs from the CPU's: %lld "
        "of %lld elements, first [%lld]: %.9g on the device, %.9g on the CPU; relative "
        "L2 distance %.3g, bound %.3g",
        program.name.c_str(), in.label.c_str(), std::string(in.operation->name).c_str(),
        program.values[out.value].name.c_str(), out.type.to_string().c_str(),
        static_cast<long long>(difference.unequal),
        static_cast<long long>(out.type.shape.elements()), static_cast<long long>(difference.first),
        difference.device_value, difference.cpu_value, difference.relative, bound);
    std::string message = text;
    for (const Operand& o : in.inputs)
      message += "\n  input '" + program.values[o.value].name + "' " + o.type.to_string();
    throw InternalError(message);
  }

  ExecutorParts parts_;
  kernels::Device& device_;
  kernels::CpuDevice& cpu_;
  LockstepReport& report_;
  std::unique_ptr<kernels::Stream> stream_;
  std::array<Buffer, kTiers> twins_;  ///< copies of the arenas in host memory
  std::vector<std::unique_ptr<Loaded>> loaded_;
  RunNumber runs_ = 0;
  std::exception_ptr error_;
};

}  // namespace

std::string LockstepReport::to_string() const {
  std::string text = "operation and result              results      worst      bound\n";
  for (const auto& [name, row] : rows) {
    char bound[24] = "same bits", line[120];
    if (row.bound != 0) std::snprintf(bound, sizeof bound, "%.1e", row.bound);
    std::snprintf(line, sizeof line, "%-32s %8lld %10.2e %10s\n", name.c_str(),
                  static_cast<long long>(row.results), row.worst, bound);
    text += line;
  }
  return text;
}

std::unique_ptr<Executor> make_lockstep_executor(ExecutorParts parts, kernels::Device& device,
                                                 kernels::CpuDevice& cpu, LockstepReport& report) {
  return std::make_unique<LockstepExecutor>(std::move(parts), device, cpu, report);
}

}  // namespace strata::runtime
