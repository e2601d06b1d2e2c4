#include "kernels/cuda/cudnn_attention.h"

#include <dlfcn.h>
#include <fmt/core.h>

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/cudnn_scratch.h"

// The handle of cuDNN, by this name, through which the frontend looks up cuDNN's functions.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace strata::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using TensorNode = std::shared_ptr<Tensor_attributes>;
using kernels::KernelCall;
using kernels::Tensor;

/// The oldest version that serves: it has device descriptions, and its backward pass is right
/// inside CUDA graphs at lengths that are no multiple of 128 (since 9.15.1) and deterministic from
/// sm_100 on (since 9.18.1). NVIDIA's TransformerEngine refuses older versions for these reasons.
constexpr std::int64_t kLeastVersion = 91801;
constexpr std::uintptr_t kOperandAlignment = 16;

/// Names of operands in a graph.
enum Operand : std::int64_t { kQ = 1, kK, kV, kO, kLse, kDout, kDq, kDk, kDv };

/// Returns the beginning of `text` as one line: the frontend's messages are traces of many lines.
std::string one_line(const std::string& text) {
  constexpr std::size_t kMost = 400;
  std::string line;
  for (const char c : text.substr(0, kMost)) {
    const bool space = c == '\n' || c == '\t' || c == ' ';
    if (!space || (!line.empty() && line.back() != ' ')) line += space ? ' ' : c;
  }
  return line;
}

void check(fe::error_t status, const std::string& what) {
  if (!status.is_good())
    throw HostError("cuDNN: " + what + " failed: " + one_line(status.get_message()));
}

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw HostError(std::string(call) + " failed: " + fe::detail::get_error_string(status));
}

/// Calls `run`, and turns the frontend's exceptions into HostError.
template <typename Run>
auto guarded(const Run& run) {
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw HostError("cuDNN: " + one_line(error.what()));
  }
}

std::string too_old(std::int64_t version) {
  return fmt::format("cuDNN {}, attention needs 9.18.1 ({}) or later", version, kLeastVersion);
}

/// Opens the library for the whole process if none is open. Throws HostError if it is too old.
void open_library(const CudnnFiles& files) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (fe::cudnn_dlhandle == nullptr) {
    // The frontend opens libcudart once, by the name in this variable. The user's value wins.
    if (!files.cudart.empty())
      (void)::setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", files.cudart.c_str(), 0);
    fe::cudnn_dlhandle = ::dlopen(files.cudnn.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (fe::cudnn_dlhandle == nullptr)
      throw HostError("cannot open " + files.cudnn + ": " + ::dlerror());
  }
  const auto version = static_cast<std::int64_t>(fe::detail::get_backend_version());
  if (version < kLeastVersion)
    throw HostError(files.cudnn + " is " + too_old(version) +
                    "; install nvidia-cudnn-cu13 or set STRATA_CUDA_PATH");
}

fe::DataType_t element(DType dtype) {
  return dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
}

/// Makes the graph of one problem in cuDNN's terms: tensors B x heads x T x D with any strides.
class GraphBuilder {
 public:
  GraphBuilder(Graph& graph, const AttentionProblem& problem) : graph_(graph), p_(problem) {}

  void forward() {
    const auto options = fe::graph::SDPA_attributes()
                             .set_name("attention")
                             .set_generate_stats(true)
                             .set_causal_mask(true)
                             .set_attn_scale(p_.scale);
    const auto [o, lse] =
        graph_.sdpa(input("q", kQ, p_.heads, p_.q_stride), input("k", kK, p_.kv_heads, p_.k_stride),
                    input("v", kV, p_.kv_heads, p_.v_stride), options);
    output(o, kO, p_.heads, p_.o_stride);
    lse->set_output(true).set_uid(kLse).set_data_type(fe::DataType_t::FLOAT);
    lse->set_dim(lse_extents()).set_stride(lse_strides());
  }

  void backward() {
    const auto options = fe::graph::SDPA_backward_attributes()
                             .set_name("attention_backward")
                             .set_causal_mask(true)
                             .set_attn_scale(p_.scale)
                             .set_deterministic_algorithm(true);
    const TensorNode lse = graph_.tensor(Tensor_attributes()
                                             .set_name("lse")
                                             .set_uid(kLse)
                                             .set_data_type(fe::DataType_t::FLOAT)
                                             .set_dim(lse_extents())
                                             .set_stride(lse_strides()));
    const auto [dq, dk, dv] = graph_.sdpa_backward(
        input("q", kQ, p_.heads, p_.q_stride), input("k", kK, p_.kv_heads, p_.k_stride),
        input("v", kV, p_.kv_heads, p_.v_stride), input("o", kO, p_.heads, p_.o_stride),
        input("do", kDout, p_.heads, p_.dout_stride), lse, options);
    output(dq, kDq, p_.heads, p_.dq_stride);
    output(dk, kDk, p_.kv_heads, p_.dk_stride);
    output(dv, kDv, p_.kv_heads, p_.dv_stride);
  }

 private:
  using Extents = std::vector<std::int64_t>;

  [[nodiscard]] Extents extents(std::int64_t heads) const {
    return {p_.batch, heads, p_.sequence, p_.head_size};
  }
  [[nodiscard]] Extents strides(std::int64_t stride) const {
    return {p_.sequence * stride, p_.head_size, stride, 1};
  }
  [[nodiscard]] Extents lse_extents() const { return {p_.batch, p_.heads, p_.sequence, 1}; }
  [[nodiscard]] Extents lse_strides() const { return {p_.heads * p_.sequence, p_.sequence, 1, 1}; }

  TensorNode input(const char* name, Operand operand, std::int64_t heads, std::int64_t stride) {
    return graph_.tensor(Tensor_attributes()
                             .set_name(name)
                             .set_uid(operand)
                             .set_dim(extents(heads))
                             .set_stride(strides(stride)));
  }
  void output(const TensorNode& tensor, Operand operand, std::int64_t heads, std::int64_t stride) {
    tensor->set_output(true).set_uid(operand);
    tensor->set_dim(extents(heads)).set_stride(strides(stride));
  }

  Graph& graph_;
  const AttentionProblem& p_;
};

/// A graph that is ready to run.
struct PlannedGraph {
  Graph graph;
  CudnnPlan plan;
};

std::int64_t library_version() {
  return static_cast<std::int64_t>(fe::detail::get_backend_version());
}

/// Plans `problem` for the device of `handle`, or for `description` if `handle` is null.
std::unique_ptr<PlannedGraph> build_plan(const AttentionProblem& problem, int architecture,
                                         cudnnHandle_t handle,
                                         const std::shared_ptr<fe::DeviceProperties>& description) {
  const std::string name = "planning " + problem.to_string();
  auto planned = std::make_unique<PlannedGraph>();
  Graph& graph = planned->graph;
  graph.set_sm_version(architecture);  // otherwise the frontend asks the current device
  graph.set_io_data_type(element(problem.dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  GraphBuilder builder(graph, problem);
  if (problem.backward)
    builder.backward();
  else
    builder.forward();
  check(graph.validate(), name);
  if (handle == nullptr) graph.set_device_properties(description);
  check(handle == nullptr ? graph.build_operation_graph() : graph.build_operation_graph(handle),
        name);
  check(graph.create_execution_plans({fe::HeurMode_t::A}), name);
  graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  check(graph.check_support(), name);
  check(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE), name);
  check(graph.get_workspace_size(planned->plan.workspace_bytes), name);
  check(graph.get_plan_name(planned->plan.engine), name);
  return planned;
}

}  // namespace

std::string why_not_cudnn(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  int major = 0, minor = 0, patch = 0;
  constexpr int kNumbers = 3;
  if (std::sscanf(name.c_str(), "libcudnn.so.%d.%d.%d", &major, &minor, &patch) != kNumbers)
    return "";
  const std::int64_t version = major * 10'000 + minor * 100 + patch;
  return version < kLeastVersion ? too_old(version) : "";
}

class CudnnPlanner::Implementation {
 public:
  Implementation(const CudnnFiles& files, const std::string& device) {
    open_library(files);
    check(description_->deserialize({device.begin(), device.end()}),
          "reading the description of a device");
    // "deviceVer" is 900 for sm_90.
    const JsonValue document = parse_json(device, "the description of a device", {});
    architecture_ = static_cast<int>(document.at("deviceVer").as_integer()) / 10;
  }

  [[nodiscard]] int architecture() const { return architecture_; }
  [[nodiscard]] CudnnPlan plan(const AttentionProblem& problem) const {
    return build_plan(problem, architecture_, nullptr, description_)->plan;
  }

 private:
  std::shared_ptr<fe::DeviceProperties> description_ = std::make_shared<fe::DeviceProperties>();
  int architecture_ = 0;
};

CudnnPlanner::CudnnPlanner(const CudnnFiles& files, const std::string& device)
    : implementation_(guarded([&] { return std::make_unique<Implementation>(files, device); })) {}
CudnnPlanner::~CudnnPlanner() = default;

CudnnPlan CudnnPlanner::plan(const AttentionProblem& problem) const {
  return guarded([&] { return implementation_->plan(problem); });
}

int CudnnPlanner::architecture() const { return implementation_->architecture(); }

std::int64_t CudnnPlanner::version() const { return library_version(); }

class CudnnAttention::Implementation {
 public:
  Implementation(const CudnnFiles& files, int architecture,
                 std::function<void(const std::string&)> report)
      : architecture_(architecture), report_(std::move(report)) {
    open_library(files);
    check(fe::detail::create_handle(&handle_), "cudnnCreate");
  }
  /// Destroys the plans before the handle that they were made with.
  ~Implementation() {
    plans_.clear();
    (void)fe::detail::destroy_handle(handle_);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  bool run(bool backward, kernels::Stream& stream, const KernelCall& call) {
    const kernels::Types inputs = types(call.inputs), outputs = types(call.outputs);
    const std::string reason = no_library_attention(backward, inputs, outputs, call.attributes);
    if (!reason.empty()) return refuse("attention", reason);
    AttentionProblem problem = attention_problem(backward, inputs, outputs, call.attributes);
    if (!aligned(call.inputs) || !aligned(call.outputs))
      return refuse(problem.to_string(), "operands that are not aligned to 16 bytes");
    const std::int64_t batch = problem.batch;
    problem.batch = cudnn_samples(problem, architecture_);
    if (problem.batch == 0) return refuse(problem.to_string(), "too much scratch for one sample");
    PlannedGraph* planned = planned_for(problem);
    if (planned == nullptr) return false;
    void* workspace = aligned_workspace(call.workspace, planned->plan.workspace_bytes);
    if (workspace == nullptr)
      return refuse(problem.to_string(),
                    fmt::format("it needs {} bytes of workspace and the plan has {}",
                                planned->plan.workspace_bytes, call.workspace.size()));
    check(fe::detail::set_stream(handle_, cuda(stream).get()), "cudnnSetStream");
    for (std::int64_t first = 0; first < batch; first += problem.batch) {
      Pointers operands = pointers(backward, call, batch, first);
      check(planned->graph.execute(handle_, operands, workspace), problem.to_string());
    }
    return true;
  }

 private:
  using Pointers = std::unordered_map<std::int64_t, void*>;

  static kernels::Types types(std::span<const Tensor> tensors) {
    kernels::Types result;
    for (const Tensor& tensor : tensors) result.push_back(tensor.type);
    return result;
  }
  static bool aligned(std::span<const Tensor> tensors) {
    for (const Tensor& tensor : tensors)
      if (reinterpret_cast<std::uintptr_t>(tensor.data) % kOperandAlignment != 0) return false;
    return true;
  }
  /// Returns the first aligned address in `workspace`, or nullptr if `bytes` do not fit after it.
  static void* aligned_workspace(std::span<std::byte> workspace, std::int64_t bytes) {
    void* start = workspace.data();
    std::size_t space = workspace.size();
    return std::align(kCudnnAlignment, static_cast<std::size_t>(bytes), start, space);
  }

  /// The addresses of all operands at sample `first`.
  static Pointers pointers(bool backward, const KernelCall& call, std::int64_t batch,
                           std::int64_t first) {
    static constexpr Operand kForwardInputs[] = {kQ, kK, kV}, kForwardOutputs[] = {kO, kLse};
    static constexpr Operand kBackwardInputs[] = {kDout, kQ, kK, kV, kO, kLse},
                             kBackwardOutputs[] = {kDq, kDk, kDv};
    Pointers result;
    const auto add = [&](std::span<const Operand> names, std::span<const Tensor> tensors) {
      for (std::size_t i = 0; i < names.size(); ++i)
        result[names[i]] = sample_of(tensors[i], batch, first);
    };
    add(backward ? std::span<const Operand>(kBackwardInputs) : kForwardInputs, call.inputs);
    add(backward ? std::span<const Operand>(kBackwardOutputs) : kForwardOutputs, call.outputs);
    return result;
  }

  /// Returns the plan for `problem`, made at its first use, or nullptr if cuDNN has none.
  PlannedGraph* planned_for(const AttentionProblem& problem) {
    const auto found = plans_.find(problem);
    if (found != plans_.end()) return found->second.get();
    std::unique_ptr<PlannedGraph> planned;
    try {
      planned = build_plan(problem, architecture_, handle_, nullptr);
    } catch (const std::exception& error) {
      (void)refuse(problem.to_string(), one_line(error.what()));
    }
    return plans_.emplace(problem, std::move(planned)).first->second.get();
  }

  bool refuse(const std::string& problem, const std::string& reason) {
    const std::string message = "cuDNN does not run " + problem + ", our own kernels do: " + reason;
    if (reported_.insert(message).second) report_(message);
    return false;
  }

  int architecture_;
  std::function<void(const std::string&)> report_;
  cudnnHandle_t handle_ = nullptr;
  std::map<AttentionProblem, std::unique_ptr<PlannedGraph>> plans_;
  std::set<std::string> reported_;
};

CudnnAttention::CudnnAttention(const CudnnFiles& files, int architecture,
                               std::function<void(const std::string&)> report)
    : implementation_(guarded([&] {
        return std::make_unique<Implementation>(files, architecture, std::move(report));
      })) {}
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::attention(kernels::Stream& stream, const KernelCall& call) {
  return guarded([&] { return implementation_->run(false, stream, call); });
}

bool CudnnAttention::attention_backward(kernels::Stream& stream, const KernelCall& call) {
  return guarded([&] { return implementation_->run(true, stream, call); });
}

std::int64_t CudnnAttention::version() const { return library_version(); }

}  // namespace strata::cuda
