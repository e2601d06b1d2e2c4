#include "train/engine/engine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/ops/step_control.h"
#include "runtime/graph/state_names.h"
#include "runtime/passes/layer_major.h"
#include "runtime/passes/staging.h"

namespace strata::train {

using compile::ProgramKind;
using kernels::AgreedWord;
using zero::MicroStepKind;

namespace {

constexpr std::int64_t kExchangeWords = 1 << 13;

/// The rank's valid targets. Made once: a string of this length allocates.
const std::string kHostTargets = runtime::host_name(runtime::kStepTargets);

void require(bool holds, const char* fault) {
  if (!holds) throw InvalidArgument(std::string("Engine: ") + fault);
}

/// Looks at the parts before anything is made of them; returns the same.
EngineParts& checked(EngineParts& parts) {
  require(parts.site != nullptr, "EngineParts has no site");
  const compile::StepPrograms& set = parts.programs;
  const comm::Communicator& communicator = parts.site->host_communicator();
  require(set.settings.plan.mesh.ranks() == communicator.size() &&
              comm::rank_of(set.settings.plan.mesh, set.settings.at) == communicator.rank(),
          "its Programs were built for another rank or world than that of the communicator; give "
          "both the same one");
  require(parts.disk != nullptr || set.disk_bytes() == 0,
          "its Programs use the disk tier, and EngineParts has no disk");
  const double scale = parts.initial_loss_scale.value_or(set.initial_loss_scale);
  require(std::isfinite(scale) && scale > 0,
          "EngineParts::initial_loss_scale is no positive number");
  return parts;
}

/// Throws for the first of `numbers` that no row of an embedding has.
void check_tokens(const char* what, std::span<const std::int32_t> numbers, std::int64_t lowest,
                  std::int64_t vocabulary) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] < lowest || numbers[i] >= vocabulary)
      throw InvalidArgument(std::string(what) + " " + std::to_string(i) + " of a micro-batch is " +
                            std::to_string(numbers[i]) + ", expected one of a vocabulary of " +
                            std::to_string(vocabulary));
}

constexpr const char* kHalfStep =
    "a step ended with an error in the middle, which is no state to go on from; make another "
    "engine";

}  // namespace

Engine::Engine(EngineParts parts)
    : programs_(std::move(checked(parts).programs)),
      micro_steps_(zero::micro_steps(programs_.settings.plan)),
      batches_(static_cast<std::size_t>(programs_.settings.plan.micro_steps) *
               static_cast<std::size_t>(programs_.settings.plan.leaves_per_rank())),
      site_(std::move(parts.site)),
      memory_(programs_, *site_, parts.disk),
      exchange_(
          make_shared_arena(communicator(), "exchange", kExchangeWords * size_of(DType::i64))),
      disk_bytes_(programs_.arena_bytes(runtime::Tier::disk)),
      seed_(parts.seed.value_or(programs_.seed)) {
  site_->program_communicator().register_arena({arena().base(), arena().bytes(), arena().memfd()});
  communicator().register_arena({exchange_.base(), exchange_.bytes(), exchange_.memfd()});
  for (const runtime::Tier tier : runtime::kAllTiers)
    if (arena(tier).bytes() > 0)
      executor_parts_.arenas[static_cast<std::size_t>(tier)] = &memory_.arena(tier);
  executor_parts_.disk = memory_.disk();
  executor_parts_.communicators.add(programs_.settings.plan.mesh.spanned(comm::AxisSet::all()),
                                    site_->program_communicator());
  executor_parts_.observers = std::move(parts.observers);
  check_programs(programs_);
  load_programs();

  if (!programs_.trains()) return;
  kernels::StepState state;
  state.loss_scale = parts.initial_loss_scale.value_or(programs_.initial_loss_scale);
  state.hysteresis = kernels::StepRules::from(programs_.settings.control).hysteresis;
  memory_.write(runtime::kStepState, std::as_bytes(std::span(&state, 1)));
}

Engine::~Engine() {
  STRATA_CHECK(
      lent_.use_count() == 1,
      "an engine is destroyed before a CheckpointSave that reads it; destroy the save first");
}

template <typename T>
std::span<T> Engine::typed(const std::string& name) const {
  const std::span<std::byte> bytes = storage(name);
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
std::span<T> Engine::input(const std::string& name) const {
  return typed<T>(runtime::host_name(name));
}

std::int64_t Engine::fill_batch(std::int64_t step, int micro_step, const FillBatch& fill) {
  auto& [tokens, targets, samples] = batches_.at(static_cast<std::size_t>(micro_step));
  tokens.resize(input<std::int32_t>("tokens").size());
  targets.resize(tokens.size());
  samples.resize(input<std::int64_t>("rng").size() - 2);
  fill(step, micro_step, {tokens, targets, samples});
  if (programs_.vocabulary > 0) {
    check_tokens("token", tokens, 0, programs_.vocabulary);
    check_tokens("target", targets, std::numeric_limits<std::int32_t>::min(), programs_.vocabulary);
  }
  return std::ranges::count_if(targets, [](std::int32_t t) { return t >= 0; });
}

void Engine::write_inputs(std::int64_t step, const FilledBatch& batch, int place) {
  if (last_run_ >= 0) executor_->wait_inputs_read(last_run_);
  const auto name = [&](const char* input) { return runtime::micro_input_name(input, place); };
  std::ranges::copy(batch.tokens, input<std::int32_t>(name("tokens")).begin());
  std::ranges::copy(batch.targets, input<std::int32_t>(name("targets")).begin());
  const std::span<std::int64_t> rng = input<std::int64_t>(name("rng"));
  rng[0] = seed_;
  rng[1] = step;
  std::ranges::copy(batch.samples, rng.begin() + 2);
}

void Engine::write_word(std::uint32_t flags) {
  const std::span<std::int64_t> word = typed<std::int64_t>(runtime::kHostWord);
  std::fill(word.begin(), word.end(), 0);
  for (int flag = 0; flag < AgreedWord::kFlags; ++flag)
    word[AgreedWord::kFirstFlag + flag] = flags >> flag & 1u;
}

std::optional<int> Engine::handle(ProgramKind kind) const {
  for (const auto& [key, handle] : handles_)
    if (key.kind == kind) return handle;
  return {};
}

int Engine::train_handle(MicroStepKind micro_step, Snapshot snapshot) const {
  const auto copying = handles_.find({ProgramKind::snapshot, micro_step});
  return snapshot == Snapshot::take && copying != handles_.end()
             ? copying->second
             : handles_.at({ProgramKind::train, micro_step});
}

std::optional<kernels::StepMetrics> Engine::start_step(std::int64_t step, const FillBatch& fill,
                                                       Snapshot snapshot) {
  require(programs_.trains(), "it has no Programs that train");
  require(snapshot == Snapshot::none || handle(ProgramKind::snapshot),
          "no Program takes snapshots: set ProgramRequest::saving before build_programs");
  require(!in_step_, kHalfStep);
  complete_snapshot();
  // Records stand where the step's own updates will change them, or where this step's Program is
  // yet to bring those of the step before.
  if (snapshot == Snapshot::take) {
    hold_is_due_ = has_snapshot_ = true;
    if (programs_.settings.plan.updates != runtime::Updates::next_step) complete_snapshot();
  }
  in_step_ = true;  // until all of it is started: half a step is no state to go on from
  last_step_ = step;
  if (!under_way_) steps_started_ = steps_in_state();  // a state may have been loaded
  const bool by_layer = programs_.settings.plan.order == runtime::MicroStepOrder::by_layer;
  if (const auto reads = handle(ProgramKind::read_ahead); reads && !is_read_ahead_)
    start(*reads, step);
  std::int64_t valid = 0;
  for (std::size_t i = 0; i < batches_.size(); ++i)
    valid += fill_batch(step, static_cast<int>(i), fill);
  for (const auto& [micro_step, batch] : micro_steps_) {
    const std::size_t count = by_layer ? batches_.size() : 1;
    for (std::size_t place = 0; place < count; ++place)
      write_inputs(step, batches_[static_cast<std::size_t>(batch) + place],
                   static_cast<int>(place));
    if (zero::begins_step(micro_step)) {
      write_word(std::exchange(pending_flags_, 0));
      typed<std::int64_t>(kHostTargets)[0] = valid;
    }
    start(train_handle(micro_step, snapshot), step);
  }
  in_step_ = false;
  updates_pending_ = handle(ProgramKind::drain).has_value();
  is_read_ahead_ = true;
  const auto before = std::exchange(under_way_, StepUnderWay{last_run_, steps_started_++});
  if (!before) return std::nullopt;
  executor_->wait(before->run);
  return read_metrics(before->ordinal);
}

void Engine::settle() {
  require(!in_step_, kHalfStep);
  executor_->wait_all();
  settled_ = true;
}

void Engine::complete_snapshot() {
  if (!std::exchange(hold_is_due_, false)) return;
  settle();
  memory_.hold_snapshot();
}

void Engine::release_snapshot() {
  hold_is_due_ = has_snapshot_ = false;
  memory_.release_snapshot();
}

std::optional<kernels::StepMetrics> Engine::drain() {
  require(!in_step_, kHalfStep);
  complete_snapshot();
  if (std::exchange(updates_pending_, false)) {
    start(*handle(ProgramKind::drain), last_step_);
    is_read_ahead_ = false;  // the updates have used it
  }
  settle();
  const auto last = std::exchange(under_way_, std::nullopt);
  if (!last) return std::nullopt;
  return read_metrics(last->ordinal);
}

kernels::StepMetrics Engine::train_step(std::int64_t step, const FillBatch& fill) {
  require(!under_way_,
          "train_step() while a step that start_step() began is under way; drain() first");
  start_step(step, fill);
  return *drain();
}

std::int64_t Engine::steps_in_state() const {
  kernels::StepState state;
  std::vector<std::byte> buffer;
  std::memcpy(&state, read(runtime::kStepState, buffer).data(), sizeof state);
  return state.updates + state.skipped;
}

kernels::StepMetrics Engine::read_metrics(std::int64_t ordinal) const {
  kernels::StepMetrics metrics;
  const auto slot = static_cast<std::size_t>(ordinal % 2);
  std::memcpy(&metrics, storage(runtime::kHostMetrics).data() + slot * sizeof metrics,
              sizeof metrics);
  STRATA_CHECK(metrics.step == ordinal, metrics.step, ordinal);
  return metrics;
}

double Engine::evaluate(std::int64_t batches, const FillBatch& fill) {
  const std::optional<int> evaluation = handle(ProgramKind::evaluate);
  if (!evaluation)
    throw InvalidArgument(
        "the engine has no Program that evaluates: set ProgramRequest::evaluate before "
        "build_programs");
  // Batches may end early: sums of losses over sums of targets, not a mean of means. The word holds
  // few thousand nats, so each batch is divided by its places, rounded up to a power of two:
  // exactly.
  const std::size_t places = std::bit_ceil(input<std::int32_t>("targets").size());
  require(!in_step_, kHalfStep);
  require(!under_way_, "evaluate() while a step is under way; drain() first");
  double sum = 0;
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    targets += fill_batch(i, 0, fill);
    write_inputs(i, batches_[0]);
    write_word(0);  // flags wait for the next step, which is where they are read
    typed<std::int64_t>(kHostTargets)[0] = static_cast<std::int64_t>(places);
    start(*evaluation, last_step_);
    executor_->wait(last_run_);
    const std::span<std::int64_t> word = input<std::int64_t>(runtime::kAgreedWord);
    if (word[AgreedWord::kNonFiniteLoss] != 0) sum = std::numeric_limits<double>::quiet_NaN();
    sum +=
        std::ldexp(static_cast<double>(word[AgreedWord::kLoss]), -40) * static_cast<double>(places);
  }
  settle();
  sum_over_ranks({&targets, 1});
  return sum / static_cast<double>(std::max<std::int64_t>(targets, 1));
}

std::vector<float> Engine::logits(const std::vector<std::int32_t>& tokens) {
  const std::optional<int> generation = handle(ProgramKind::generate);
  require(generation.has_value(), "logits() needs the Programs of build_generation()");
  const std::span<std::int32_t> row = input<std::int32_t>("tokens");
  if (tokens.empty() || tokens.size() > row.size())
    throw InvalidArgument("Engine: logits() of " + std::to_string(tokens.size()) +
                          " tokens, expected 1 to " + std::to_string(row.size()));
  if (programs_.vocabulary > 0) check_tokens("token", tokens, 0, programs_.vocabulary);
  // Attention is causal: what stands after the row that is read does not matter.
  std::fill(std::copy(tokens.begin(), tokens.end(), row.begin()), row.end(), 0);
  input<std::int32_t>("rows")[0] = static_cast<std::int32_t>(tokens.size()) - 1;
  start(*generation, 0);
  executor_->wait(last_run_);
  const std::span<std::byte> from = storage(runtime::host_name(compile::kLogits));
  const DType dtype = programs_.shape.dtype;
  std::vector<float> result(from.size() / static_cast<std::size_t>(size_of(dtype)));
  kernels::convert_range(dtype, from.data(), DType::f32,
                         reinterpret_cast<std::byte*>(result.data()),
                         static_cast<std::int64_t>(result.size()));
  return result;
}

void Engine::require_drained(const char* call) const {
  if (!is_drained())
    throw InvalidArgument(std::string(call) + ": a step is under way; drain() first");
}

void Engine::barrier() {
  require(settled_ && !in_step_, "barrier() while a step is under way; settle() or drain() first");
  comm::Collective barrier;
  barrier.partition.bounds.assign(static_cast<std::size_t>(communicator().size()) + 1, 0);
  comm::HostStream stream;
  communicator().run(stream, barrier, nullptr, nullptr, {});
}

void Engine::sum_over_ranks(std::span<std::int64_t> values) {
  require(settled_ && !in_step_,
          "sum_over_ranks() while a step is under way; settle() or drain() first");
  comm::HostStream stream;
  for (std::size_t first = 0; first < values.size(); first += kExchangeWords) {
    const std::span<std::int64_t> part =
        values.subspan(first, std::min<std::size_t>(kExchangeWords, values.size() - first));
    const comm::Collective sum =
        comm::integer_sum(static_cast<std::int64_t>(part.size()), communicator().size());
    std::vector<std::byte> workspace(static_cast<std::size_t>(communicator().workspace_bytes(sum)));
    std::memcpy(exchange_.base(), part.data(), part.size_bytes());
    communicator().run(stream, sum, exchange_.base(), exchange_.base(), workspace);
    std::memcpy(part.data(), exchange_.base(), part.size_bytes());
  }
}

}  // namespace strata::train
