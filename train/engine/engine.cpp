#include "train/engine/engine.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "comm/host_stream.h"
#include "comm/shown_collective.h"
#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
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

/// Name of the rank's number of valid targets. A constant, since a string of this length allocates.
const std::string kHostTargets = runtime::host_name(runtime::kStepTargets);

void require(bool holds, const char* fault) {
  if (!holds) throw InvalidArgument(std::string("Engine: ") + fault);
}

/// Checks the parts before anything is made of them, and returns them.
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

/// Throws for the first of `numbers` that is no row of the embedding.
void check_tokens(const char* what, std::span<const std::int32_t> numbers, std::int64_t lowest,
                  std::int64_t vocabulary) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] < lowest || numbers[i] >= vocabulary)
      throw InvalidArgument(
          fmt::format("{} {} of a micro-batch is {}, expected one of a vocabulary of {}", what, i,
                      numbers[i], vocabulary));
}

/// The place of Flag::lengths_differ. Its sum over ranks is 0 if all run Programs of one length:
/// rank 0 adds its hash of the length once for each other rank, and each of these subtracts its
/// own.
constexpr int kLengthsDiffer = static_cast<int>(Flag::lengths_differ);
static_assert(kLengthsDiffer < AgreedWord::kFlags);

void require_one_length(bool holds) {
  require(holds,
          "ranks gave this step, or evaluation, different sequences, which run different Programs; "
          "give all of them the length of its longest sample on any rank");
}

constexpr const char* kHalfStep =
    "a step ended with an error in the middle, which is no state to go on from; make another "
    "engine";

}  // namespace

Engine::Engine(EngineParts parts)
    : programs_(std::move(checked(parts).programs)),
      site_(std::move(parts.site)),
      memory_(programs_, *site_, parts.disk),
      exchange_(
          make_shared_arena(communicator(), "exchange", kExchangeWords * size_of(DType::i64))),
      disk_bytes_(programs_.arena_bytes(runtime::Tier::disk)),
      seed_(parts.seed.value_or(programs_.seed)),
      beat_(std::move(parts.beat)) {
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

Engine::SampleLength Engine::sample_length(std::int64_t sequence) const {
  const runtime::Plan& plan = programs_.settings.plan;
  const std::int64_t longest = plan.shape.sequence;
  if (sequence < 0 || sequence > longest)
    throw InvalidArgument(fmt::format(
        "Engine: samples of {} tokens, expected 1 to {} (the Plan's shape.sequence), or 0 for that",
        sequence, longest));
  if (sequence == 0) return {longest, longest, 0};
  const auto shorter = std::ranges::lower_bound(plan.shorter_sequences, sequence);
  if (shorter == plan.shorter_sequences.end()) return {sequence, longest, 0};
  return {sequence, *shorter, *shorter};
}

std::int64_t Engine::fill_batch(std::int64_t step, int micro_step, const FillBatch& fill,
                                const SampleLength& length) {
  auto& [tokens, targets, samples] = batches_.at(static_cast<std::size_t>(micro_step));
  samples.resize(input<std::int64_t>("rng").size() - 2);
  tokens.resize(samples.size() * static_cast<std::size_t>(length.given));
  targets.resize(tokens.size());
  fill(step, micro_step, {tokens, targets, samples});
  if (programs_.vocabulary > 0) {
    check_tokens("token", tokens, 0, programs_.vocabulary);
    check_tokens("target", targets, std::numeric_limits<std::int32_t>::min(), programs_.vocabulary);
  }
  return std::ranges::count_if(targets, [](std::int32_t t) { return t >= 0; });
}

void Engine::write_inputs(std::int64_t step, const FilledBatch& batch, const SampleLength& length,
                          int place) {
  if (last_run_ >= 0) executor_->wait_inputs_read(last_run_);
  const auto name = [&](const char* input) { return runtime::micro_input_name(input, place); };
  const auto write_rows = [&](const std::vector<std::int32_t>& rows, const char* to,
                              std::int32_t padding) {
    auto at = input<std::int32_t>(name(to)).begin();
    for (auto row = rows.begin(); row != rows.end(); row += length.given)
      at = std::fill_n(std::copy_n(row, length.given, at), length.taken - length.given, padding);
  };
  write_rows(batch.tokens, "tokens", 0);
  write_rows(batch.targets, "targets", -1);
  const std::span<std::int64_t> rng = input<std::int64_t>(name("rng"));
  rng[0] = seed_;
  rng[1] = step;
  std::ranges::copy(batch.samples, rng.begin() + 2);
}

void Engine::write_word(std::uint32_t flags, std::int64_t shorter) {
  const std::span<std::int64_t> word = typed<std::int64_t>(runtime::kHostWord);
  std::fill(word.begin(), word.end(), 0);
  for (int flag = 0; flag < AgreedWord::kFlags; ++flag)
    word[AgreedWord::kFirstFlag + flag] = flags >> flag & 1u;
  const std::uint64_t mine = shorter == 0 ? 0 : hash_64(std::as_bytes(std::span(&shorter, 1)));
  const auto peers = static_cast<std::uint64_t>(communicator().size()) - 1;
  word[AgreedWord::kFirstFlag + kLengthsDiffer] =
      static_cast<std::int64_t>(communicator().rank() == 0 ? mine * peers : -mine);
}

std::optional<int> Engine::handle(ProgramKind kind) const {
  for (const auto& [key, handle] : handles_)
    if (key.kind == kind) return handle;
  return {};
}

int Engine::train_handle(MicroStepKind micro_step, Snapshot snapshot, std::int64_t shorter) const {
  const auto copying = handles_.find({ProgramKind::snapshot, micro_step, shorter});
  return snapshot == Snapshot::take && copying != handles_.end()
             ? copying->second
             : handles_.at({ProgramKind::train, micro_step, shorter});
}

std::optional<kernels::StepMetrics> Engine::start_step(std::int64_t step, const FillBatch& fill,
                                                       Snapshot snapshot, std::int64_t sequence) {
  require(programs_.trains(), "it has no Programs that train");
  require(snapshot == Snapshot::none || handle(ProgramKind::snapshot),
          "no Program takes snapshots: set ProgramRequest::saving before build_programs");
  require(!in_step_, kHalfStep);
  const SampleLength length = sample_length(sequence);
  complete_snapshot();
  // This step's Program has yet to run the updates of the step before if updates run in the next
  // step, so that the records are completed later. Otherwise its own updates will change them.
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
    valid += fill_batch(step, static_cast<int>(i), fill, length);
  const std::optional<StepUnderWay> before = under_way_;
  bool has_ended = !before;
  const auto wait_for_step_before = [&] {
    if (std::exchange(has_ended, true)) return;
    executor_->wait(before->run);
    step_end_ = std::chrono::steady_clock::now();
  };
  for (const auto& [micro_step, batch] : micro_steps_) {
    // Two Programs may be under way, so the second one of this step has to wait for that step
    // anyway. Waiting here says when it ended.
    if (!micro_step.begins_step) wait_for_step_before();
    const std::size_t count = by_layer ? batches_.size() : 1;
    for (std::size_t place = 0; place < count; ++place)
      write_inputs(step, batches_[static_cast<std::size_t>(batch) + place], length,
                   static_cast<int>(place));
    if (micro_step.begins_step) {
      write_word(std::exchange(pending_flags_, 0), length.shorter);
      typed<std::int64_t>(kHostTargets)[0] = valid;
    }
    start(train_handle(micro_step, snapshot, length.shorter), step);
  }
  in_step_ = false;
  updates_pending_ = handle(ProgramKind::drain).has_value();
  is_read_ahead_ = true;
  under_way_ = StepUnderWay{last_run_, steps_started_++};
  wait_for_step_before();
  if (!before) return std::nullopt;
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
  step_end_ = std::chrono::steady_clock::now();
  const auto last = std::exchange(under_way_, std::nullopt);
  if (!last) return std::nullopt;
  return read_metrics(last->ordinal);
}

kernels::StepMetrics Engine::train_step(std::int64_t step, const FillBatch& fill,
                                        std::int64_t sequence) {
  require(!under_way_,
          "train_step() while a step that start_step() began is under way; drain() first");
  start_step(step, fill, Snapshot::none, sequence);
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
  require_one_length((metrics.flags >> kLengthsDiffer & 1) == 0);
  return metrics;
}

double Engine::evaluate(std::int64_t batches, const FillBatch& fill, std::int64_t sequence) {
  if (!handle(ProgramKind::evaluate))
    throw InvalidArgument(
        "the engine has no Program that evaluates: set ProgramRequest::evaluate before "
        "build_programs");
  // Batches may have different numbers of valid targets, so this adds losses and targets rather
  // than means. The agreed word holds only a few thousand nats, so each batch's loss is divided by
  // its number of tokens, rounded up to a power of two, which is exact.
  const SampleLength length = sample_length(sequence);
  const auto places =
      std::bit_ceil(static_cast<std::uint64_t>(programs_.settings.plan.shape.batch * length.taken));
  require(!in_step_, kHalfStep);
  require(!under_way_, "evaluate() while a step is under way; drain() first");
  double sum = 0;
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    targets += fill_batch(i, 0, fill, length);
    write_inputs(i, batches_[0], length);
    write_word(0, length.shorter);  // flags wait for the next step, which is where they are read
    typed<std::int64_t>(kHostTargets)[0] = static_cast<std::int64_t>(places);
    start(handles_.at({ProgramKind::evaluate, MicroStepKind::only, length.shorter}), last_step_);
    executor_->wait(last_run_);
    const std::span<std::int64_t> word = input<std::int64_t>(runtime::kAgreedWord);
    require_one_length(word[AgreedWord::kFirstFlag + kLengthsDiffer] == 0);
    if (word[AgreedWord::kNonFiniteLoss] != 0) sum = std::numeric_limits<double>::quiet_NaN();
    sum += static_cast<double>(word[AgreedWord::kLoss]) * kernels::kLossUnit *
           static_cast<double>(places);
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
    throw InvalidArgument(
        fmt::format("Engine: logits() of {} tokens, expected 1 to {}", tokens.size(), row.size()));
  if (programs_.vocabulary > 0) check_tokens("token", tokens, 0, programs_.vocabulary);
  // Attention is causal: tokens after the row that is read have no effect.
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
  const comm::ShownCollective shown(communicator(), "meet between steps");
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
    const comm::ShownCollective shown(communicator(), "add up numbers of ranks");
    communicator().run(stream, sum, exchange_.base(), exchange_.base(), workspace);
    std::memcpy(part.data(), exchange_.base(), part.size_bytes());
  }
}

}  // namespace strata::train
