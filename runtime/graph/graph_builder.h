// The API in which model code is written: blocks, parameters under their Hugging Face names, and
// one method per operation, so that a transformer block reads like the paper.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace strata::runtime {

/// The inputs of one micro-batch, the same in every Program; the engine fills them per step.
struct BatchInputs {
  ValueId tokens = kNoValue;   ///< int32 [N]
  ValueId targets = kNoValue;  ///< int32 [N]; < 0: ignored
  ValueId rng = kNoValue;      ///< int64 [2 + B]: seed, step, global sample of each row
};

/// One tensor of the group of adjacent tensors that one matrix product reads.
struct WeightPart {
  std::string name;
  std::int64_t rows;
};

/// Weight and optional bias of a linear layer or a norm.
struct Affine {
  ValueId weight = kNoValue;
  ValueId bias = kNoValue;
};

struct Heads {
  ValueId q, k, v;  ///< views [N, heads, head_size] of one packed product
};

/// Not thread-safe. Every value is [N, C] or [N, H, D] with N = batch x sequence. Misuse (a
/// parameter or an operation before the first block, operands of a wrong shape, a value of another
/// builder) throws InvalidArgument naming block, operation and operands.
class GraphBuilder {
 public:
  GraphBuilder(DType dtype, std::int64_t batch, std::int64_t sequence);

  /// Starts the block of all parameters and operations that follow; its name ("layer.3") is the
  /// prefix of their labels. Throws InvalidArgument if the name is taken.
  void begin_block(std::string name);

  // Parameters: each has a name of its own in the whole model.
  /// Adds a matrix as one group: parts stacked along rows ([out, in] convention), each named.
  ValueId matrix(std::vector<WeightPart> parts, std::int64_t cols, Initializer initializer);
  /// Adds an embedding-like matrix whose rows are padded with zeros in memory.
  ValueId padded_matrix(std::string name, std::int64_t rows, std::int64_t padded_rows,
                        std::int64_t cols, Initializer initializer);
  /// Adds vectors that are laid out back to back (the biases of q, k, v).
  ValueId vector(std::vector<WeightPart> parts, Initializer initializer);

  [[nodiscard]] const BatchInputs& inputs() const { return inputs_; }
  /// `positions` may be kNoValue.
  ValueId embedding(ValueId table, ValueId positions);
  ValueId dropout(ValueId x, double p);
  /// Adds LayerNorm, or RMSNorm if `rms`. `x` is [N, C] or [N, H, C].
  ValueId norm(ValueId x, Affine affine, double epsilon, bool rms);
  struct Residual {
    ValueId sum, normed;
  };
  /// Computes sum = x + dropout(delta) and normed = norm(sum).
  Residual residual_norm(ValueId x, ValueId delta, Affine affine, double epsilon, bool rms,
                         double p);
  ValueId residual_add(ValueId x, ValueId delta, double p);
  /// `transposed`: the weight is stored [in, out] (GPT-2).
  ValueId linear(ValueId x, Affine affine, bool transposed = false);
  /// Returns views of a packed [N, (heads + 2 kv_heads) * head_size] product.
  Heads split_heads(ValueId qkv, std::int64_t heads, std::int64_t kv_heads, std::int64_t head_size);
  ValueId rope_table(kernels::Attributes attributes);
  /// Rotates a [N, H, D] view in place (a new version of the same bytes).
  ValueId rope_in_place(ValueId x, ValueId table);
  /// Computes causal attention; returns [N, heads * head_size].
  ValueId attention(Heads heads, double scale, double p);
  ValueId gelu(ValueId x, bool tanh);
  ValueId swiglu(ValueId gate_up);
  /// Computes head and cross-entropy with their gradient; returns the loss (fp64 scalar).
  ValueId head_loss(ValueId x, ValueId weight, std::int64_t vocabulary);
  /// Computes the same loss without gradients.
  ValueId head_loss_eval(ValueId x, ValueId weight, std::int64_t vocabulary);
  ValueId select_rows(ValueId x, ValueId index);
  /// Adds a value that the host writes before a Program starts.
  ValueId input(std::string name, kernels::TensorType type);

  /// Seals units and returns the graph; every call after that throws InvalidArgument.
  Graph finish();
  [[nodiscard]] DType dtype() const { return dtype_; }

 private:
  void check_unfinished() const;
  /// Returns the block that `what` ("parameter 'wte.weight'") belongs to. Throws if there is none.
  int block_of(const std::string& what) const;
  void check_parts(const std::vector<WeightPart>& parts, std::int64_t cols,
                   std::int64_t padded_rows);
  /// Throws unless each of `inputs` is a value of this graph.
  void check_inputs(std::string_view operation, const std::vector<ValueId>& inputs) const;
  /// Example: "block 'layer.0', linear(layer.0.1.norm fp32[8, 64], h.0.weight fp32[64, 65])".
  std::string describe(std::string_view operation, const std::vector<ValueId>& inputs) const;
  std::string next_label(std::string_view operation);
  ValueId grow_unit(bool matrices, const std::vector<WeightPart>& parts, std::int64_t cols,
                    std::int64_t padded_rows, Initializer initializer);
  ValueId parameter_view(int unit, std::int64_t offset_elements, kernels::Shape shape,
                         std::string name);
  ValueId apply_one(std::string_view operation, std::vector<ValueId> inputs,
                    kernels::Attributes attributes);
  std::vector<ValueId> apply(std::string_view operation, std::vector<ValueId> inputs,
                             kernels::Attributes attributes);
  ValueId scale();
  void add_dropout(double p, std::vector<ValueId>& inputs, kernels::Attributes& attributes);

  Graph graph_;
  DType dtype_;
  std::int64_t sequence_;
  BatchInputs inputs_;
  ValueId scale_ = kNoValue;
  int matrices_unit_ = -1, vectors_unit_ = -1;  ///< units of the current block
  std::map<std::string, int> parameters_;       ///< name -> block
  int next_key_ = 0;                            ///< random streams: one per dropout in model order
  int next_label_ = 0;
  bool is_finished_ = false;
};

}  // namespace strata::runtime
