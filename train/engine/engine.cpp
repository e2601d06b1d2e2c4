#include "train/engine/engine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/agreement.h"
#include "core/check.h"
#include "core/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/step_control.h"
#include "runtime/state_names.h"
#include "runtime/verifier.h"

namespace strata::train {

using kernels::AgreedWord;
using zero::Position;

namespace {

constexpr std::int64_t kExchangeWords = 1 << 13;

Position position_of(int micro_step, int micro_steps) {
  if (micro_steps == 1) return Position::only;
  if (micro_step == 0) return Position::first;
  return micro_step + 1 == micro_steps ? Position::last : Position::middle;
}

runtime::ArenaKind arena_kind(const comm::Communicator& communicator) {
  return communicator.backend() == "shm" ? runtime::ArenaKind::shared_memory
                                         : runtime::ArenaKind::private_memory;
}

}  // namespace

Engine::Engine(EngineParts parts)
    : programs_(std::move(parts.programs)),
      communicator_(parts.communicator),
      device_(parts.threads),
      communication_device_(1),
      compute_stream_(device_),
      communication_stream_(communication_device_),
      arena_("device", programs_.arena_bytes(runtime::Tier::device), arena_kind(*communicator_)),
      exchange_("exchange", kExchangeWords * size_of(DType::i64), arena_kind(*communicator_)),
      seed_(parts.seed) {
  communicator_->register_arena({arena_.base(), arena_.bytes(), arena_.memfd()});
  communicator_->register_arena({exchange_.base(), exchange_.bytes(), exchange_.memfd()});
  runtime::ExecutorParts executor_parts;
  executor_parts.device_arena = &arena_;
  executor_parts.communicator = communicator_;
  executor_parts.observers = std::move(parts.observers);
  executor_ = runtime::make_cpu_executor(std::move(executor_parts), kernels::cpu_kernels(),
                                         compute_stream_, communication_stream_);
  std::vector<std::string> sequence;
  const auto load = [&](const runtime::Program& program) {
    if (const auto problems = runtime::verify(program); !problems.empty())
      throw InternalError("Program '" + program.name + "' is not safe to run: " + problems.front());
    const auto lines = program.collective_sequence();
    sequence.insert(sequence.end(), lines.begin(), lines.end());
    return executor_->load(program);
  };
  for (const auto& [position, program] : programs_.train) train_handles_[position] = load(program);
  if (programs_.evaluate) evaluate_handle_ = load(*programs_.evaluate);
  if (programs_.generate) generate_handle_ = load(*programs_.generate);
  comm::require_equal_sequences(*communicator_, sequence);

  if (programs_.train.empty()) return;
  kernels::StepState state;
  state.loss_scale = parts.initial_loss_scale;
  state.hysteresis = kernels::StepRules::from(programs_.settings.control).hysteresis;
  std::memcpy(storage(runtime::kStepState).data(), &state, sizeof state);
}

Engine::~Engine() = default;

std::span<std::byte> Engine::storage(const std::string& name) const {
  const runtime::PersistentValue& value = programs_.persistent.find(name);
  return {arena_.base() + value.offset_bytes, static_cast<std::size_t>(value.type.span_bytes())};
}

std::span<std::byte> Engine::storage(const zero::StateEntry& entry) const {
  const std::int64_t size = size_of(entry.dtype);
  return storage(entry.storage)
      .subspan(static_cast<std::size_t>(entry.storage_element * size),
               static_cast<std::size_t>(entry.elements * size));
}

template <typename T>
std::span<T> Engine::typed(const std::string& name) const {
  const std::span<std::byte> bytes = storage(name);
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

std::int64_t Engine::write_inputs(std::int64_t step, int micro_step, const FillBatch& fill) {
  const std::span<std::int64_t> rng = typed<std::int64_t>("rng");
  const std::span<std::int32_t> targets = typed<std::int32_t>("targets");
  rng[0] = seed_;
  rng[1] = step;
  fill(step, micro_step, {typed<std::int32_t>("tokens"), targets, rng.subspan(2)});
  const std::int64_t valid = std::ranges::count_if(targets, [](std::int32_t t) { return t >= 0; });
  const std::span<double> batch = typed<double>("batch");
  batch[0] = static_cast<double>(std::max<std::int64_t>(valid, 1));
  batch[1] = programs_.settings.plan.micro_steps;
  return valid;
}

void Engine::write_word(std::uint32_t flags) {
  const std::span<std::int64_t> word = typed<std::int64_t>(runtime::kHostWord);
  std::fill(word.begin(), word.end(), 0);
  for (int flag = 0; flag < AgreedWord::kFlags; ++flag)
    word[AgreedWord::kFirstFlag + flag] = flags >> flag & 1u;
}

kernels::StepMetrics Engine::train_step(std::int64_t step, const FillBatch& fill) {
  const int micro_steps = programs_.settings.plan.micro_steps;
  write_word(std::exchange(pending_flags_, 0));
  for (int a = 0; a < micro_steps; ++a) {
    write_inputs(step, a, fill);
    executor_->start(train_handles_.at(position_of(a, micro_steps)));
    executor_->wait();
  }
  kernels::StepMetrics metrics;
  std::memcpy(&metrics, storage(runtime::kStepMetrics).data(), sizeof metrics);
  return metrics;
}

double Engine::evaluate(std::int64_t batches, const FillBatch& fill) {
  // Batches may end early: sums of losses over sums of targets, not a mean of means. The word holds
  // few thousand nats, so each batch is divided by its places, rounded up to a power of two:
  // exactly.
  const double places = static_cast<double>(std::bit_ceil(typed<std::int32_t>("targets").size()));
  double sum = 0;
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    write_word(0);  // flags wait for the next step, which is where they are read
    targets += write_inputs(i, 0, fill);
    const std::span<double> batch = typed<double>("batch");
    batch[0] = places;
    batch[1] = 1;
    executor_->start(evaluate_handle_);
    executor_->wait();
    const std::span<std::int64_t> word = typed<std::int64_t>(runtime::kAgreedWord);
    if (word[AgreedWord::kNonFiniteLoss] != 0) sum = std::numeric_limits<double>::quiet_NaN();
    sum += std::ldexp(static_cast<double>(word[AgreedWord::kLoss]), -40) * places;
  }
  sum_over_ranks({&targets, 1});
  return sum / static_cast<double>(std::max<std::int64_t>(targets, 1));
}

std::vector<float> Engine::logits(const std::vector<std::int32_t>& tokens) {
  const std::span<std::int32_t> input = typed<std::int32_t>("tokens");
  STRATA_CHECK(!tokens.empty() && tokens.size() <= input.size(), tokens.size(), input.size());
  // Attention is causal: what stands behind the row that is read does not matter.
  std::fill(std::copy(tokens.begin(), tokens.end(), input.begin()), input.end(), 0);
  typed<std::int32_t>("rows")[0] = static_cast<std::int32_t>(tokens.size()) - 1;
  executor_->start(generate_handle_);
  executor_->wait();
  const std::span<std::byte> from = storage(kLogits);
  const DType dtype = programs_.settings.dtype;
  std::vector<float> result(from.size() / static_cast<std::size_t>(size_of(dtype)));
  kernels::convert_range(dtype, from.data(), DType::f32,
                         reinterpret_cast<std::byte*>(result.data()),
                         static_cast<std::int64_t>(result.size()));
  return result;
}

void Engine::barrier() {
  comm::Collective barrier;
  barrier.partition.bounds.assign(static_cast<std::size_t>(communicator_->size()) + 1, 0);
  communicator_->run(communication_stream_, barrier, nullptr, nullptr, {});
}

void Engine::sum_over_ranks(std::span<std::int64_t> values) {
  for (std::size_t first = 0; first < values.size(); first += kExchangeWords) {
    const std::span<std::int64_t> part =
        values.subspan(first, std::min<std::size_t>(kExchangeWords, values.size() - first));
    const comm::Collective sum =
        comm::integer_sum(static_cast<std::int64_t>(part.size()), communicator_->size());
    std::vector<std::byte> workspace(static_cast<std::size_t>(communicator_->workspace_bytes(sum)));
    std::memcpy(exchange_.base(), part.data(), part.size_bytes());
    communicator_->run(communication_stream_, sum, exchange_.base(), exchange_.base(), workspace);
    std::memcpy(part.data(), exchange_.base(), part.size_bytes());
  }
}

}  // namespace strata::train
