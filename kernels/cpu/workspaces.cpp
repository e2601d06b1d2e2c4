#include "kernels/cpu/workspaces.h"

#include "core/round_up.h"
#include "kernels/cpu/attention_task.h"
#include "kernels/cpu/head_geometry.h"
#include "kernels/cpu/matmul.h"
#include "kernels/ops/linear_products.h"
#include "kernels/ops/norm.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

/// Counts K and V of one head; a tile of queries as stored and transposed, its transposed outputs,
/// its probabilities; maximum and sum per query.
std::int64_t attention_scratch_floats(std::int64_t sequence, std::int64_t head_size) {
  const std::int64_t padded = round_up(head_size, 32);
  return 2 * round_up(sequence, kAttentionKeys) * padded + 3 * kAttentionQueries * padded +
         kAttentionQueries * kAttentionKeys + 2 * kAttentionQueries;
}

/// Counts K, V, dK, dV of one head; Q and dO of a tile as stored and transposed, dQ; probabilities
/// and gradients of scores of a tile; log-sum-exp and delta per query.
std::int64_t attention_backward_scratch_floats(std::int64_t sequence, std::int64_t head_size) {
  const std::int64_t padded = round_up(head_size, 32);
  return 4 * round_up(sequence, kAttentionKeys) * padded + 5 * kAttentionQueries * padded +
         2 * kAttentionQueries * kAttentionKeys + 2 * kAttentionQueries;
}

namespace {

constexpr std::int64_t kFloat = sizeof(float);

std::int64_t columns_of(const TensorType& x) { return x.shape[x.shape.ndim() - 1]; }

std::int64_t attention_bytes(TypeSpan inputs, TypeSpan, const Attributes& attributes,
                             const DeviceCapabilities& device) {
  return device.workers * kFloat *
         attention_scratch_floats(attributes.integer("sequence"), inputs[0].shape[2]);
}

std::int64_t attention_backward_bytes(TypeSpan inputs, TypeSpan, const Attributes& attributes,
                                      const DeviceCapabilities& device) {
  return device.workers * kFloat *
         attention_backward_scratch_floats(attributes.integer("sequence"), inputs[1].shape[2]);
}

/// Counts the keys (id, row) to sort.
std::int64_t embedding_backward_bytes(TypeSpan inputs, TypeSpan, const Attributes&,
                                      const DeviceCapabilities&) {
  return inputs[0].shape.elements() * std::int64_t{sizeof(std::uint64_t)};
}

std::int64_t head_bytes(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                        const DeviceCapabilities& device) {
  return head_geometry(inputs, outputs, attributes, device.workers).total_bytes;
}

template <MatmulTypes (*kTypes)(TypeSpan, TypeSpan, const Attributes&)>
std::int64_t product_bytes(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                           const DeviceCapabilities& device) {
  return MatmulEngine::scratch_bytes(kTypes(inputs, outputs, attributes), device.workers);
}

/// Counts weight and bias as fp32, then two rows per worker for types other than fp32.
std::int64_t norm_bytes(TypeSpan inputs, TypeSpan, const Attributes&,
                        const DeviceCapabilities& device) {
  return (2 + 2 * device.workers) * columns_of(inputs[0]) * kFloat;
}

/// Counts weight as fp32, four rows per worker, and the partial sums of dweight and dbias by chunk.
std::int64_t norm_backward_bytes(TypeSpan inputs, TypeSpan, const Attributes&,
                                 const DeviceCapabilities& device) {
  const std::int64_t columns = columns_of(inputs[0]);
  const std::int64_t vectors = inputs[0].shape.elements() / columns;
  const std::int64_t chunk = norm_chunk_vectors(columns);
  const std::int64_t chunks = divide_up(vectors, chunk);
  return (1 + 4 * device.workers + 2 * chunks) * columns * kFloat;
}

/// Counts one word per worker: additions are of integers, so it does not matter who adds what.
std::int64_t norm_squares_bytes(TypeSpan, TypeSpan, const Attributes&,
                                const DeviceCapabilities& device) {
  return device.workers * AgreedWord::kWords * std::int64_t{sizeof(std::int64_t)};
}

/// Counts the frequencies, fp64 [D/2].
std::int64_t rope_table_bytes(TypeSpan, TypeSpan, const Attributes& attributes,
                              const DeviceCapabilities&) {
  return attributes.integer("head_size") / 2 * std::int64_t{sizeof(double)};
}

constexpr WorkspaceRow kWorkspaces[] = {
    {"attention", attention_bytes},
    {"attention_backward", attention_backward_bytes},
    {"embedding_backward", embedding_backward_bytes},
    {"head_loss", head_bytes},
    {"head_loss_eval", head_bytes},
    {"linear", product_bytes<linear_types>},
    {"linear_backward_input", product_bytes<linear_backward_input_types>},
    {"linear_backward_weight", product_bytes<linear_backward_weight_types>},
    {"norm", norm_bytes},
    {"norm_backward", norm_backward_bytes},
    {"norm_squares", norm_squares_bytes},
    {"residual_norm", norm_bytes},
    {"rope_table", rope_table_bytes},
};

}  // namespace

std::span<const WorkspaceRow> cpu_workspaces() { return kWorkspaces; }

}  // namespace strata::kernels
