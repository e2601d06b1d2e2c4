// The interface of an operation to the rest of the system: types, cost, spread over ranks,
// workspace, aliases, gradient rule. One header per operation (kernels/ops/linear.h,
// kernels/ops/attention.h, ...) declares its Operation; the code that runs it is found per backend
// in a KernelTable, so planning needs no device.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/device/attributes.h"
#include "kernels/device/capabilities.h"
#include "kernels/device/tensor.h"
#include "kernels/ops/spread.h"

namespace strata::kernels {

/// The work of one call. `bytes` is the traffic that cannot be avoided: each operand once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

/// Output `output` may take the storage of input `input` when that input has no later reader.
struct Alias {
  int output;
  int input;
};

/// The list in which a backward step finds an operand. `result` numbers the outputs of all earlier
/// steps of the rule, in order.
enum class Source : std::uint8_t { input, output, output_gradient, result };

struct GradientOperand {
  Source source;
  int index;
};

/// One operation of the backward pass. It has the forward node's attributes, overridden by `extra`.
struct BackwardStep {
  std::string_view operation;
  std::vector<GradientOperand> operands;
  Attributes extra = {};
  /// True if the step takes a gradient that the input of its first result has already: as an
  /// additional last operand, and returns the sum (in place if it can). So a tied weight, or a
  /// value with two readers, costs no second buffer and no extra pass.
  bool accumulates = false;
  int outputs = 1;  ///< how many results the step has
};

/// The gradient of an operation as data: the steps in order, and for each forward input the operand
/// that is its gradient. Inputs that do not appear get no gradient.
struct GradientRule {
  std::vector<BackwardStep> steps;
  std::vector<std::pair<int, GradientOperand>> input_gradients;
};

/// A rule of spread_outputs, or the function that chooses it by attributes.
class SpreadRule {
 public:
  using Choice = std::string_view (*)(const Attributes& attributes);
  // NOLINTNEXTLINE(google-explicit-constructor): a table's row names one or the other
  constexpr SpreadRule(const char* rule) : rule_(rule) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr SpreadRule(Choice choice) : choice_(choice) {}

  [[nodiscard]] std::string_view of(const Attributes& attributes) const {
    return choice_ == nullptr ? rule_ : choice_(attributes);
  }

 private:
  std::string_view rule_;
  Choice choice_ = nullptr;
};

using Types = std::vector<TensorType>;
using TypeSpan = std::span<const TensorType>;

/// The executor of an operation: a kernel of the backend, a communicator, or the store of the disk
/// tier.
enum class RunBy : std::uint8_t { kernel, collective, disk };

/// All functions are pure. `infer` throws InvalidArgument naming operand, found and expected type.
struct Operation {
  std::string_view name;
  Types (*infer)(TypeSpan inputs, const Attributes& attributes);
  Cost (*cost)(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes);
  SpreadRule spread = "";  ///< along one axis of the mesh; "": all operands are replicated
  /// nullptr: not differentiable.
  GradientRule (*gradient)(TypeSpan inputs, TypeSpan outputs,
                           const Attributes& attributes) = nullptr;
  std::vector<Alias> aliases = {};
  RunBy run_by = RunBy::kernel;
  /// True if steps may predicate it: device kernels then honour KernelCall::predicate.
  bool predicated = false;
};

/// Returns the bytes of scratch that one call needs on `device`.
std::int64_t workspace_bytes(const Operation& operation, TypeSpan inputs, TypeSpan outputs,
                             const Attributes& attributes, const DeviceCapabilities& device);

/// Returns the cost of reading or writing every operand once, without flops.
Cost memory_cost(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes);

/// Returns all operations of kernels/ (operations.cpp lists them).
std::vector<const Operation*> all_operations();

/// Returns the operation of this name. Ends the process if there is none.
const Operation& find_operation(std::string_view name);

}  // namespace strata::kernels
