#include "train/run/run_device.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "comm/device_factory.h"
#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/file.h"
#include "core/format_bytes.h"
#include "kernels/cuda/open_device.h"
#include "machine/numa.h"
#include "machine/this_host.h"
#include "train/engine/device_choices.h"
#include "train/engine/warm_up.h"

namespace strata::train {
namespace {

/// Name in a model directory, beside config.json.
constexpr const char* kChoicesFile = "strata_choices.json";
/// Room for kernels, graphs and libraries that are loaded after planning. The driver's share is in
/// use by then, so this is less than Device::reserved_bytes of a machine that nobody looked at.
constexpr std::int64_t kBesideTheArenaBytes = 512 << 20;
constexpr std::int64_t kMostChoicesBytes = 64 << 20;

}  // namespace

RunDevice::RunDevice(const TrainOptions& options, const RankContext& context,
                     comm::Communicator& host)
    : host_(host) {
  make(options, context);
  if (options.tf32 && !device_)
    notes_.emplace_back("tf32 changes nothing: the CPU multiplies fp32 operands as they are");
  if (options.reduction != comm::Reduction::native) return;
  notes_.push_back(communicator_ && communicator_->backend() == "nccl"
                       ? "gradients are added in NCCL's own order: bits depend on it and on the "
                         "number of ranks"
                       : "native reduction exists over NCCL only; gradients are added in order");
}

void RunDevice::make(const TrainOptions& options, const RankContext& context) {
  const DeviceChoice choice = options.check_device ? DeviceChoice::cuda : options.device;
  description_ = "CPU";
  if (choice == DeviceChoice::cpu) return;
  const cuda::DeviceCount count = cuda::count_devices();
  const std::vector<std::int64_t> devices = comm::gather_numbers(host_, count.devices);
  for (std::size_t rank = 0; rank < devices.size(); ++rank)
    if ((devices[rank] == 0) != (devices[0] == 0))
      throw HostError(
          fmt::format("rank {} sees {} GPUs, rank 0 sees {}; look at CUDA_VISIBLE_DEVICES and the "
                      "drivers, or use --device cpu",
                      rank, devices[rank], devices[0]));
  if (count.devices == 0) {
    if (choice == DeviceChoice::cuda)
      throw HostError("--device cuda: " + count.why_none + "; or use --device cpu");
    description_ = "CPU (" + count.why_none + ")";
    return;
  }
  device_ = cuda::open_device(context.local_rank % count.devices, cuda::Libraries::used,
                              options.tf32 ? cuda::Tf32::allowed : cuda::Tf32::never);
  comm::DeviceCommunicator made = comm::make_device_communicator(
      host_, *device_, {options.reduction, context.network_interface, context.host});
  communicator_ = std::move(made.communicator);
  if (!made.note.empty()) notes_.push_back(made.note);
  description_ = device_->description();
}

machine::Machine RunDevice::machine(int threads, int local_world) const {
  const machine::Machine host = machine::look_at_this_host();
  const std::int64_t mine = host.processor.vector_bits.whole();
  const auto bits = static_cast<int>(std::ranges::min(comm::gather_numbers(host_, mine)));
  if (!device_) {
    const auto most = static_cast<int>(std::ranges::max(comm::gather_numbers(host_, threads)));
    return machine::placed_on(machine::cpu_machine(most, bits), host);
  }
  const std::string name = comm::gather_texts(host_, device_->name())[0];  // all plan for rank 0's
  return machine::placed_on(machine::gpu_machine(name, device_->capabilities(), local_world), host);
}

std::unique_ptr<ExecutionSite> RunDevice::make_site(const TrainOptions& options, int threads) {
  using enum runtime::Recordings;
  if (!device_) return std::make_unique<CpuSite>(host_, threads);
  return std::make_unique<DeviceSite>(
      host_, *device_, *communicator_,
      DeviceSiteOptions{.threads = threads,
                        .recordings = options.device_graphs ? on : off,
                        .lockstep = options.check_device ? &compared_ : nullptr});
}

std::optional<int> RunDevice::node() const {
  return device_ ? machine::node_of_device(device_->pci_address()) : std::nullopt;
}

std::string RunDevice::lacking_memory(std::int64_t arena_bytes) const {
  if (!device_) return "";
  const kernels::DeviceMemoryFacts memory = device_->memory();
  // free_bytes() leaves room for what comes later: kernels, graphs and libraries' own buffers.
  if (arena_bytes <= *free_bytes()) return "";
  return "out of device memory: this rank plans " + format_bytes(arena_bytes) + ", " +
         device_->name() + " has " + format_bytes(memory.free_bytes) + " free of " +
         format_bytes(memory.total_bytes) + ", of which " + format_bytes(kBesideTheArenaBytes) +
         " are left for kernels and libraries";
}

std::optional<std::int64_t> RunDevice::free_bytes() const {
  if (!device_) return {};
  return std::max<std::int64_t>(0, device_->memory().free_bytes - kBesideTheArenaBytes);
}

std::optional<kernels::DeviceMemoryFacts> RunDevice::memory() const {
  if (!device_) return {};
  return device_->memory();
}

std::string RunDevice::prepare(const compile::StepPrograms& programs, const TrainOptions& options,
                               const Beat& beat) {
  if (!device_) return "";
  choose(programs, options, beat);
  warm_up(*device_, *communicator_, programs, beat);
  const kernels::DeviceMemoryFacts memory = device_->memory();
  used_before_bytes_ = memory.total_bytes - memory.free_bytes;
  const std::int64_t arena_bytes = programs.arena_bytes(runtime::Tier::device);
  if (arena_bytes <= memory.free_bytes) return "";
  return "out of device memory: this rank plans " + format_bytes(arena_bytes) +
         ", and with kernels and " + "libraries loaded " + device_->name() + " has " +
         format_bytes(memory.free_bytes) + " free of " + format_bytes(memory.total_bytes) +
         "; plan for less with --device-memory " + format_bytes(memory.free_bytes);
}

void RunDevice::choose(const compile::StepPrograms& programs, const TrainOptions& options,
                       const Beat& beat) {
  std::string file = options.choices, known;
  if (!file.empty() && !std::filesystem::exists(file)) file.clear();  // the file will be written
  if (options.choices.empty() &&
      std::filesystem::exists(std::filesystem::path(options.model) / kChoicesFile))
    file = (std::filesystem::path(options.model) / kChoicesFile).string();
  if (!file.empty()) known = read_whole_file(file, kMostChoicesBytes);
  agree_on_choices(*device_, host_, programs, known, file,
                   options.autotune ? kernels::ChooseBy::measuring : kernels::ChooseBy::proposal,
                   beat);
  if (options.choices.empty() || host_.rank() != 0) return;
  const std::string chosen = device_->choices();
  if (chosen == known) return;
  try {
    write_file_atomically(options.choices, chosen);
  } catch (const IoError& error) {
    notes_.push_back(std::string("choices of algorithms are not kept: ") + error.what());
  }
}

std::map<std::string, std::string> RunDevice::files() const {
  const std::string choices = device_ ? device_->choices() : "";
  return choices.empty() ? std::map<std::string, std::string>{}
                         : std::map<std::string, std::string>{{kChoicesFile, choices}};
}

std::vector<std::string> RunDevice::notes() const {
  std::vector<std::string> all = notes_;
  if (device_)
    for (const std::string& note : device_->notes()) all.push_back(note);
  return all;
}

std::string RunDevice::describe_use(std::int64_t arena_bytes) const {
  if (!device_) return "";
  const kernels::DeviceMemoryFacts memory = device_->memory();
  const std::int64_t predicted = used_before_bytes_ + arena_bytes;
  const std::int64_t found = memory.total_bytes - memory.free_bytes;
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%+.1f %%",
                100.0 * (static_cast<double>(found) / static_cast<double>(predicted) - 1));
  return "device memory in use: " + format_bytes(found) + "; predicted " + format_bytes(predicted) +
         ": " + format_bytes(arena_bytes) + " arena and " + format_bytes(used_before_bytes_) +
         " of driver, libraries and other processes (" + ratio + ")";
}

void RunDevice::close() {
  if (communicator_) communicator_->close();
}

}  // namespace strata::train
