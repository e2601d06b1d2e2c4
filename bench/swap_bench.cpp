// Measures one optimizer step whose state lives on the disk: the Program that a run uses reads,
// updates and writes all records, beside fio reading and writing as many bytes at once.
//   build/bin/swap_bench DIRECTORY [MODEL] [ROUNDS]
// fp32 AdamW, one rank, all cores. ratio = fio's time / the step's: fio is a yardstick and no
// bound, since requests of another size or order can be faster. Medians are over interleaved
// rounds. Exit code 69 means that the kernel counted other bytes than the Program says, so the disk
// was not measured.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/fio.h"
#include "bench/measured.h"
#include "comm/single.h"
#include "core/error.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/ops/step_state.h"
#include "offload/nvme/open_store.h"
#include "offload/nvme/probe.h"
#include "offload/place_transfers.h"
#include "runtime/execute/executor.h"
#include "runtime/graph/state_names.h"
#include "runtime/passes/staging.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/lower.h"
#include "train/engine/build_programs.h"
#include "train/models/hf_config.h"
#include "train/models/presets.h"

namespace {

using namespace strata;
using bench::counted_bytes;
using bench::median;

/// fio's block size; each half of the file is whole blocks.
constexpr std::int64_t kBlock = std::int64_t{1} << 20;

class SwappedStep {
 public:
  SwappedStep(const std::string& directory, const std::string& model, int threads)
      : host_(threads), helper_(1), compute_(host_), communication_(helper_) {
    offload::StoreRequest request{.directories = {directory},
                                  .bytes = offload::probe_bytes({directory})};
    const machine::Disk found = offload::probe(*offload::open_store(request));
    runtime::Program program = make_program(model, found);
    for (const runtime::Instruction& in : program.instructions)
      if (in.queue == runtime::Queue::disk_read || in.queue == runtime::Queue::disk_write)
        moved_ += runtime::room_of(in.outputs[0].bytes, runtime::Tier::disk);
    request.bytes = program.arena_bytes[static_cast<int>(runtime::Tier::disk)];
    request.options.settings = {found.request_bytes, found.depth};
    store_ = offload::open_store(request);
    request.bytes = std::max(moved_, 2 * kBlock) / (2 * kBlock) * (2 * kBlock);
    beside_ = offload::open_store(request);
    fio_ = {request.bytes, kBlock, std::max(found.depth, 16)};
    fill(*beside_);
    make_executor(std::move(program));
  }

  [[nodiscard]] std::int64_t moved_bytes() const { return moved_; }
  [[nodiscard]] std::string fio_command() const {
    return bench::fio_command(fio_, beside_->file(0), bench::FioMode::mixed);
  }

  /// Runs the step; returns its seconds.
  double run() {
    const kernels::StepControl control{.apply = 1, .learning_rate = 1e-3F};
    std::memcpy(control_, &control, sizeof control);
    const auto begin = std::chrono::steady_clock::now();
    executor_->start(handle_, 0);
    executor_->wait_all();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  /// Returns fio's seconds for as many bytes, 0 without fio.
  double run_fio() {
    const double rate = bench::run_fio(fio_, beside_->file(0), bench::FioMode::mixed);
    return rate == 0 ? 0 : static_cast<double>(moved_) / rate;
  }

 private:
  /// Writes all blocks, because reads of blocks that were never written do not reach the disk.
  static void fill(offload::NvmeStore& store) {
    const std::vector<std::byte> bytes(static_cast<std::size_t>(kBlock), std::byte{1});
    for (std::int64_t at = 0; at < store.bytes(); at += kBlock)
      store.write_bytes(at, bytes, "beside");
  }

  runtime::Program make_program(const std::string& model, const machine::Disk& found) {
    train::ProgramRequest request;
    request.model = train::read_model_config(train::find_model_config(model));
    request.options.sequence_length = 8;
    request.options.micro_batch = request.options.global_batch = 1;
    request.options.offload.optimizer = plan::Home::disk;
    machine::Machine machine = machine::typical_machine(host_.capabilities());
    machine.disk = found;
    compile::StepPrograms set = train::build_programs(request, communicator_.seat(), machine);
    // Unlike the drain of a run, this Program also reads its first records.
    runtime::Graph graph = step::lower_drain(
        train::build_model(request.model, set.shape, train::ModelUse::train).graph, set.settings);
    offload::place_transfers(graph);
    runtime::stage_inputs(graph);
    persistent_ = set.persistent;
    persistent_.add_all(graph);
    const runtime::Scheduling scheduling{set.settings.plan.limits, runtime::kUnlimitedBytes};
    return std::get<runtime::Program>(runtime::lower_scheduled(
        std::move(graph), persistent_, {"drain", machine, comm::MeshSeat::of(communicator_.seat())},
        scheduling));
  }

  void make_executor(runtime::Program program) {
    runtime::ExecutorParts parts;
    for (int t = 0; t < runtime::kTiers; ++t) {
      const auto tier = static_cast<runtime::Tier>(t);
      if (tier == runtime::Tier::disk || program.arena_bytes[t] == 0) continue;
      arenas_[t] = runtime::Arena(std::string(name_of(tier)), program.arena_bytes[t],
                                  runtime::ArenaKind::private_memory);
      parts.arenas[t] = &arenas_[t];
    }
    const runtime::Arena& pinned = arenas_[static_cast<int>(runtime::Tier::pinned)];
    const std::span<std::byte> windows(pinned.base(), static_cast<std::size_t>(pinned.bytes()));
    store_->register_memory({&windows, 1});
    for (const std::string& note : store_->notes()) std::printf("note: %s\n", note.c_str());
    const runtime::PersistentValue& control = persistent_.find(runtime::kStepControl);
    control_ = arenas_[static_cast<int>(control.tier)].base() + control.offset_bytes;
    parts.disk = store_.get();
    parts.communicators.add(comm::MeshAxis::data, communicator_);
    executor_ = runtime::make_cpu_executor(std::move(parts), kernels::cpu_kernels(), compute_,
                                           communication_);
    handle_ = executor_->load(std::move(program));
  }

  comm::SingleCommunicator communicator_;
  kernels::CpuDevice host_, helper_;
  kernels::CpuStream compute_, communication_;
  std::array<runtime::Arena, runtime::kTiers> arenas_;
  runtime::PersistentLayout persistent_;
  std::unique_ptr<offload::NvmeStore> store_, beside_;
  bench::FioJob fio_;
  std::unique_ptr<runtime::Executor> executor_;
  int handle_ = -1;
  std::byte* control_ = nullptr;
  std::int64_t moved_ = 0;
};

bool run(const std::string& directory, const std::string& model, int rounds) {
  SwappedStep step(directory, model, static_cast<int>(std::thread::hardware_concurrency()));
  std::printf("%s: %.3f GB read and as much written per step\nfio: %s\n", model.c_str(),
              static_cast<double>(step.moved_bytes()) / 2e9, step.fio_command().c_str());
  step.run();  // touches all memory
  std::vector<double> ours, fio;
  bool valid = true;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t counted = counted_bytes();
    ours.push_back(step.run());
    const double off = static_cast<double>(counted_bytes() - counted - step.moved_bytes());
    valid = valid && std::abs(off) <= 0.01 * static_cast<double>(step.moved_bytes());
    fio.push_back(step.run_fio());
    std::printf("round %d: step %.3f s, fio %.3f s, ratio %.3f\n", round, ours.back(), fio.back(),
                fio.back() / ours.back());
  }
  std::printf("median: step %.3f s, fio %.3f s, ratio %.3f\n", median(ours), median(fio),
              median(fio) / median(ours));
  if (!valid) std::printf("INVALID: the kernel counted other bytes than the Program says\n");
  return valid;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw InvalidArgument("swap_bench DIRECTORY [MODEL] [ROUNDS]");
    return run(argv[1], argc > 2 ? argv[2] : "gpt2-124m", argc > 3 ? std::atoi(argv[3]) : 9) ? 0
                                                                                             : 69;
  } catch (const Error& error) {
    std::fprintf(stderr, "swap_bench: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
