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
#include "runtime/budget.h"
#include "runtime/layer_major.h"
#include "runtime/staging.h"
#include "runtime/state_names.h"
#include "runtime/verifier.h"

namespace strata::train {

using kernels::AgreedWord;
using zero::Position;

namespace {

constexpr std::int64_t kExchangeWords = 1 << 13;

runtime::ArenaKind arena_kind(const comm::Communicator& communicator) {
  return communicator.backend() == "shm" ? runtime::ArenaKind::shared_memory
                                         : runtime::ArenaKind::private_memory;
}

/// One arena per tier that is used. Collectives work on the device's.
std::array<runtime::Arena, runtime::kTiers> make_arenas(const ProgramSet& programs,
                                                        const comm::Communicator& communicator,
                                                        kernels::Device* device) {
  std::array<runtime::Arena, runtime::kTiers> arenas;
  for (int t = 0; t < runtime::kTiers; ++t) {
    const auto tier = static_cast<runtime::Tier>(t);
    const std::int64_t bytes = programs.arena_bytes(tier);
    if (bytes == 0 || tier == runtime::Tier::disk) continue;
    if (device != nullptr && tier == runtime::Tier::device) {
      arenas[t] = runtime::Arena(*device, kernels::MemoryKind::device, bytes);
    } else if (device != nullptr && tier == runtime::Tier::pinned) {
      arenas[t] = runtime::Arena(*device, kernels::MemoryKind::pinned, bytes);
    } else {
      const auto kind = tier == runtime::Tier::device ? arena_kind(communicator)
                                                      : runtime::ArenaKind::private_memory;
      arenas[t] = runtime::Arena(std::string(name_of(tier)), bytes, kind);
    }
  }
  return arenas;
}

/// Null where snapshots hold nothing on the disk.
std::unique_ptr<runtime::SnapshotDisk> make_records(const ProgramSet& programs,
                                                    runtime::Disk* disk) {
  if (programs.snapshot_records.empty()) return nullptr;
  const runtime::OutletDisk::Outlet outlet = programs.outlet();
  std::vector<runtime::SnapshotDisk::Record> records;
  for (const std::string& name : programs.snapshot_records) {
    const runtime::PersistentValue& value = programs.persistent.find(name);
    records.push_back({outlet.behind(value.offset_bytes),
                       runtime::room_of(value.type.span_bytes(), runtime::Tier::disk)});
  }
  std::ranges::sort(records, {}, &runtime::SnapshotDisk::Record::offset);
  return std::make_unique<runtime::SnapshotDisk>(
      *disk, records, programs.disk_bytes() - programs.second_places_bytes());
}

/// Null where snapshots have no windows.
std::unique_ptr<runtime::OutletDisk> make_outlet(const ProgramSet& programs, runtime::Disk* disk) {
  const runtime::OutletDisk::Outlet outlet = programs.outlet();
  if (outlet.bytes() == 0) return nullptr;
  return std::make_unique<runtime::OutletDisk>(disk, outlet);
}

}  // namespace

Engine::Engine(EngineParts parts)
    : programs_(std::move(parts.programs)),
      micro_steps_(zero::micro_steps(programs_.settings.plan)),
      communicator_(parts.communicator),
      records_(make_records(programs_, parts.disk)),
      outlet_(make_outlet(programs_, records_ ? records_.get() : parts.disk)),
      disk_(outlet_    ? outlet_.get()
            : records_ ? records_.get()
                       : parts.disk),
      device_(parts.device),
      host_(parts.threads),
      communication_device_(1),
      compute_stream_(host_),
      communication_stream_(communication_device_),
      arenas_(make_arenas(programs_, *communicator_, device_)),
      exchange_("exchange", kExchangeWords * size_of(DType::i64), arena_kind(*communicator_)),
      seed_(parts.seed) {
  comm::Communicator& of_programs =
      device_ == nullptr ? *communicator_ : *parts.device_communicator;
  of_programs.register_arena({arena().base(), arena().bytes(), arena().memfd()});
  communicator_->register_arena({exchange_.base(), exchange_.bytes(), exchange_.memfd()});
  runtime::ExecutorParts executor_parts;
  for (int t = 0; t < runtime::kTiers; ++t)
    if (arenas_[t].bytes() > 0) executor_parts.arenas[t] = &arenas_[t];
  executor_parts.disk = disk_;
  executor_parts.host_stream = &compute_stream_;
  executor_parts.host_kernels = &kernels::cpu_kernels();
  STRATA_CHECK(programs_.arena_bytes(runtime::Tier::disk) <= (disk_ ? disk_->bytes() : 0),
               "Programs use the disk tier, which the engine was not given");
  executor_parts.communicators.add(comm::MeshAxis::data, of_programs);
  executor_parts.observers = std::move(parts.observers);
  if (device_ == nullptr)
    executor_ = runtime::make_cpu_executor(std::move(executor_parts), kernels::cpu_kernels(),
                                           compute_stream_, communication_stream_);
  else if (parts.lockstep != nullptr)
    executor_ = runtime::make_lockstep_executor(std::move(executor_parts), *device_, host_,
                                                *parts.lockstep);
  else
    executor_ =
        runtime::make_stream_executor(std::move(executor_parts), *device_, parts.recordings);
  std::vector<std::string> sequence;
  const auto load = [&](const runtime::Program& program) {
    if (const auto problems = runtime::verify(program); !problems.empty())
      throw InternalError("Program '" + program.name + "' is not safe to run: " + problems.front());
    if (const auto excess = runtime::over_budget(program, programs_.settings.plan.budget_bytes);
        !excess.empty())
      throw OutOfMemory(excess.front());
    const auto lines = program.collective_sequence();
    sequence.insert(sequence.end(), lines.begin(), lines.end());
    return executor_->load(program);
  };
  for (const auto& [position, program] : programs_.train) train_handles_[position] = load(program);
  if (programs_.drain) drain_handle_ = load(*programs_.drain);
  if (programs_.read_ahead) read_ahead_handle_ = load(*programs_.read_ahead);
  if (programs_.snapshot) snapshot_handle_ = load(*programs_.snapshot);
  if (programs_.evaluate) evaluate_handle_ = load(*programs_.evaluate);
  if (programs_.generate) generate_handle_ = load(*programs_.generate);
  comm::require_equal_sequences(*communicator_, sequence);

  if (programs_.train.empty()) return;
  kernels::StepState state;
  state.loss_scale = parts.initial_loss_scale;
  state.hysteresis = kernels::StepRules::from(programs_.settings.control).hysteresis;
  write(place(runtime::kStepState), std::as_bytes(std::span(&state, 1)));
}

Engine::~Engine() = default;

Engine::Place Engine::place(const std::string& name) const {
  const runtime::PersistentValue& value = programs_.persistent.find(name);
  return {&value, value.offset_bytes, value.type.span_bytes()};
}

Engine::Place Engine::place(const zero::StateEntry& entry, std::int64_t first,
                            std::int64_t count) const {
  STRATA_CHECK(first >= 0 && count >= 0 && first + count <= entry.elements, entry.name, first,
               count, entry.elements);
  const Place whole = place(entry.storage);
  const std::int64_t size = size_of(entry.dtype);
  return {whole.value, whole.offset_bytes + (entry.storage_element + first) * size, count * size};
}

bool Engine::on_host(const Place& place) const {
  return !place.on_disk() && arena(place.value->tier).on_host();
}

std::byte* Engine::address(const Place& place) const {
  return arena(place.value->tier).base() + place.offset_bytes;
}

std::span<const std::byte> Engine::read(const Place& place, std::vector<std::byte>& buffer) const {
  const auto bytes = static_cast<std::size_t>(place.bytes);
  if (on_host(place)) return {address(place), bytes};
  buffer.resize(bytes);
  if (place.on_disk())
    disk_->read_bytes(place.offset_bytes, buffer, place.value->name);
  else
    device_->copy_now(buffer.data(), address(place), place.bytes);
  return buffer;
}

void Engine::write(const Place& place, std::span<const std::byte> bytes) const {
  STRATA_CHECK(static_cast<std::int64_t>(bytes.size()) == place.bytes, bytes.size(), place.bytes);
  if (on_host(place))
    std::memcpy(address(place), bytes.data(), bytes.size());
  else if (place.on_disk())
    disk_->write_bytes(place.offset_bytes, bytes, place.value->name);
  else
    device_->copy_now(address(place), bytes.data(), place.bytes);
}

std::span<std::byte> Engine::storage(const std::string& name) const {
  const Place at = place(name);
  STRATA_CHECK(on_host(at), "the host cannot touch", name);
  return {address(at), static_cast<std::size_t>(at.bytes)};
}

std::span<std::byte> Engine::storage(const zero::StateEntry& entry) const {
  const Place at = place(entry, 0, entry.elements);
  STRATA_CHECK(on_host(at), "the host cannot touch", entry.name);
  return {address(at), static_cast<std::size_t>(at.bytes)};
}

std::span<const std::byte> Engine::read(const zero::StateEntry& entry, std::int64_t first,
                                        std::int64_t count, std::vector<std::byte>& buffer) const {
  return read(place(entry, first, count), buffer);
}

std::span<const std::byte> Engine::read_snapshot(const zero::StateEntry& entry, std::int64_t first,
                                                 std::int64_t count,
                                                 std::vector<std::byte>& buffer) const {
  const std::int64_t size = size_of(entry.dtype);
  const std::int64_t begin = (entry.storage_element + first) * size;
  if (entry.tier == runtime::Tier::disk) {
    const Place at = place(entry, first, count);
    buffer.resize(static_cast<std::size_t>(at.bytes));
    records_->read_held(at.offset_bytes, buffer, entry.name);
    return buffer;
  }
  const auto& pieces = programs_.snapshot_pieces;
  const auto behind = std::ranges::upper_bound(
      pieces, std::pair(std::string_view(entry.storage), begin), {},
      [](const auto& piece) { return std::pair(std::string_view(piece.storage), piece.begin); });
  STRATA_CHECK(behind != pieces.begin(), entry.name, "is in no snapshot");
  const zero::SnapshotPiece& piece = *std::prev(behind);
  STRATA_CHECK(piece.storage == entry.storage && begin + count * size <= piece.end &&
                   piece.tier != runtime::Tier::disk,
               entry.name, "is in no snapshot");
  Place at = place(piece.copy);
  at.offset_bytes += begin - piece.begin;
  at.bytes = count * size;
  return read(at, buffer);
}

void Engine::give_snapshot_to(SnapshotTaker taker) {
  if (!outlet_) return;
  if (!taker) return outlet_->give_to(nullptr);
  std::map<std::int64_t, const zero::SnapshotPiece*> pieces;  // by place in the outlet
  for (const zero::SnapshotPiece& piece : programs_.snapshot_pieces)
    pieces[programs_.persistent.find(piece.copy).offset_bytes - programs_.outlet().begin] = &piece;
  outlet_->give_to([pieces = std::move(pieces), taker = std::move(taker)](
                       std::int64_t offset, std::span<const std::byte> window) {
    const zero::SnapshotPiece& piece = *pieces.at(offset);
    taker(piece.storage, piece.begin,
          window.first(static_cast<std::size_t>(piece.end - piece.begin)));
  });
}

std::span<const std::byte> Engine::read(const std::string& name,
                                        std::vector<std::byte>& buffer) const {
  return read(place(name), buffer);
}

void Engine::write(const zero::StateEntry& entry, std::int64_t first,
                   std::span<const std::byte> bytes) const {
  write(place(entry, first, static_cast<std::int64_t>(bytes.size()) / size_of(entry.dtype)), bytes);
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

std::int64_t Engine::write_inputs(std::int64_t step, int micro_step, const FillBatch& fill,
                                  int place) {
  if (last_run_ >= 0) executor_->wait_inputs_read(last_run_);
  const auto name = [&](const char* input) { return runtime::micro_input_name(input, place); };
  const std::span<std::int64_t> rng = input<std::int64_t>(name("rng"));
  const std::span<std::int32_t> targets = input<std::int32_t>(name("targets"));
  rng[0] = seed_;
  rng[1] = step;
  fill(step, micro_step, {input<std::int32_t>(name("tokens")), targets, rng.subspan(2)});
  const std::int64_t valid = std::ranges::count_if(targets, [](std::int32_t t) { return t >= 0; });
  const std::span<double> batch = input<double>(name("batch"));
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

int Engine::train_handle(Position position, Snapshot snapshot) const {
  return snapshot == Snapshot::take && position == programs_.snapshot_position
             ? snapshot_handle_
             : train_handles_.at(position);
}

std::optional<kernels::StepMetrics> Engine::start_step(std::int64_t step, const FillBatch& fill,
                                                       Snapshot snapshot) {
  STRATA_CHECK(snapshot == Snapshot::none || snapshot_handle_ >= 0, "no Program takes snapshots");
  complete_snapshot();
  // Records stand where the step's own updates will change them, or where this step's Program is
  // yet to bring those of the step before.
  if (snapshot == Snapshot::take) {
    hold_is_due_ = true;
    if (programs_.settings.plan.updates != runtime::Updates::next_step) complete_snapshot();
  }
  STRATA_CHECK(!in_step_, "a step ended with an error in the middle; make another engine");
  in_step_ = true;  // until all of it is started: half a step is no state to go on from
  last_step_ = step;
  if (!under_way_) steps_started_ = steps_in_state();  // a state may have been loaded
  const bool by_layer = programs_.settings.plan.order == runtime::MicroStepOrder::by_layer;
  if (read_ahead_handle_ >= 0 && !is_read_ahead_) start(read_ahead_handle_, step);
  for (const auto& [position, batch] : micro_steps_) {
    if (by_layer)
      for (int a = 0; a < programs_.settings.plan.micro_steps; ++a) write_inputs(step, a, fill, a);
    else
      write_inputs(step, batch, fill);
    if (zero::begins_step(position)) write_word(std::exchange(pending_flags_, 0));
    start(train_handle(position, snapshot), step);
  }
  in_step_ = false;
  updates_pending_ = drain_handle_ >= 0;
  is_read_ahead_ = true;
  const auto before = std::exchange(under_way_, StepUnderWay{last_run_, steps_started_++});
  if (!before) return std::nullopt;
  executor_->wait(before->run);
  return read_metrics(before->ordinal);
}

void Engine::settle() {
  STRATA_CHECK(!in_step_, "a step ended with an error in the middle; make another engine");
  executor_->wait_all();
  settled_ = true;
}

void Engine::complete_snapshot() {
  if (!std::exchange(hold_is_due_, false)) return;
  settle();
  if (records_) records_->hold();
}

void Engine::release_snapshot() {
  hold_is_due_ = false;
  if (outlet_) outlet_->give_to(nullptr);
  if (records_) records_->release();
}

std::optional<kernels::StepMetrics> Engine::drain() {
  STRATA_CHECK(!in_step_, "a step ended with an error in the middle; make another engine");
  complete_snapshot();
  if (std::exchange(updates_pending_, false)) {
    start(drain_handle_, last_step_);
    is_read_ahead_ = false;  // the updates have used it
  }
  settle();
  const auto last = std::exchange(under_way_, std::nullopt);
  if (!last) return std::nullopt;
  return read_metrics(last->ordinal);
}

kernels::StepMetrics Engine::train_step(std::int64_t step, const FillBatch& fill) {
  STRATA_CHECK(!under_way_, "a step that start_step began is not drained");
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
  // Batches may end early: sums of losses over sums of targets, not a mean of means. The word holds
  // few thousand nats, so each batch is divided by its places, rounded up to a power of two:
  // exactly.
  const double places = static_cast<double>(std::bit_ceil(input<std::int32_t>("targets").size()));
  STRATA_CHECK(!under_way_, "evaluation while a step is under way");
  double sum = 0;
  std::int64_t targets = 0;
  for (std::int64_t i = 0; i < batches; ++i) {
    targets += write_inputs(i, 0, fill);
    write_word(0);  // flags wait for the next step, which is where they are read
    const std::span<double> batch = input<double>("batch");
    batch[0] = places;
    batch[1] = 1;
    start(evaluate_handle_, last_step_);
    executor_->wait(last_run_);
    const std::span<std::int64_t> word = input<std::int64_t>(runtime::kAgreedWord);
    if (word[AgreedWord::kNonFiniteLoss] != 0) sum = std::numeric_limits<double>::quiet_NaN();
    sum += std::ldexp(static_cast<double>(word[AgreedWord::kLoss]), -40) * places;
  }
  settle();
  sum_over_ranks({&targets, 1});
  return sum / static_cast<double>(std::max<std::int64_t>(targets, 1));
}

std::vector<float> Engine::logits(const std::vector<std::int32_t>& tokens) {
  const std::span<std::int32_t> row = input<std::int32_t>("tokens");
  STRATA_CHECK(!tokens.empty() && tokens.size() <= row.size(), tokens.size(), row.size());
  // Attention is causal: what stands behind the row that is read does not matter.
  std::fill(std::copy(tokens.begin(), tokens.end(), row.begin()), row.end(), 0);
  input<std::int32_t>("rows")[0] = static_cast<std::int32_t>(tokens.size()) - 1;
  start(generate_handle_, 0);
  executor_->wait(last_run_);
  const std::span<std::byte> from = storage(runtime::host_name(kLogits));
  const DType dtype = programs_.settings.dtype;
  std::vector<float> result(from.size() / static_cast<std::size_t>(size_of(dtype)));
  kernels::convert_range(dtype, from.data(), DType::f32,
                         reinterpret_cast<std::byte*>(result.data()),
                         static_cast<std::int64_t>(result.size()));
  return result;
}

void Engine::barrier() {
  STRATA_CHECK(settled_, "barrier while a step is under way");
  comm::Collective barrier;
  barrier.partition.bounds.assign(static_cast<std::size_t>(communicator_->size()) + 1, 0);
  communicator_->run(communication_stream_, barrier, nullptr, nullptr, {});
}

void Engine::sum_over_ranks(std::span<std::int64_t> values) {
  STRATA_CHECK(settled_, "sum over ranks while a step is under way");
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
