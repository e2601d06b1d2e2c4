#include "train/session/settle_request.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "machine/hardware_override.h"
#include "train/models/hf_config.h"
#include "train/run/find_stored_model.h"
#include "train/run/model_directory.h"
#include "train/run/publish_worlds.h"

namespace strata::train {

int ranks_of(const ParsedCommandLine& command_line, const RunRequest& request) {
  if (command_line.assumed_world > 0) return command_line.assumed_world;
  if (request.hardware) return request.hardware->hosts * request.hardware->devices;
  return request.context.world;
}

/// Throws ConfigError if the machine to plan for computes on another device than the one asked for.
static void require_one_device(const std::string& hardware, const RunRequest& request) {
  const DeviceChoice asked = request.config.options.device;
  if (!request.hardware || asked == DeviceChoice::automatic) return;
  const bool on_cpu = request.hardware->host_is_device();
  if (on_cpu == (asked == DeviceChoice::cpu)) return;
  throw ConfigError("--hardware " + hardware + " computes on " + (on_cpu ? "cpu" : "cuda") +
                    ", and --device " + (on_cpu ? "cuda" : "cpu") +
                    " asks for another; leave one of the two out");
}

/// Reads the DeepSpeed JSON that the command line names, if any.
static DeepSpeedSettings file_of(const ParsedCommandLine& command_line) {
  if (command_line.config.empty()) return {};
  return read_deepspeed_json(command_line.config, command_line.strict);
}

/// The files of settings that the command line names, by --config and by --hardware with figures
/// behind it. Texts and names of machines stand for no file.
static std::vector<NamedFile> files_of_settings(const ParsedCommandLine& command_line) {
  std::vector<NamedFile> files;
  std::error_code unknown;
  const std::string& hardware = command_line.hardware;
  for (const NamedFile& named :
       {NamedFile{"--config", command_line.config}, NamedFile{"--hardware", hardware},
        NamedFile{"--hardware", hardware.substr(0, hardware.find(','))}})
    if (std::filesystem::is_regular_file(named.path, unknown)) files.push_back(named);
  return files;
}

/// Returns the numbers of ranks, below that of the run, that settings fit.
static std::vector<int> worlds_that_fit(const MicroBatchIn& micro_batch_in, int world_of_run) {
  std::vector<int> worlds;
  for (int world = 1; world < world_of_run; ++world)
    if (micro_batch_in(world)) worlds.push_back(world);
  return worlds;
}

RunRequest settle_request(const ParsedCommandLine& command_line, const RankContext& context,
                          std::span<const ModelFamily> own) {
  RunRequest request;
  request.context = context;
  request.own = own;
  request.read = files_of_settings(command_line);
  if (!command_line.hardware.empty())
    request.hardware = machine::load_overridden_hardware(command_line.hardware);
  const std::string requested = requested_model(command_line);
  const std::string directory = resolve_model_directory(requested);
  request.model = read_model_config(directory, own);
  const auto settled = [command_line, file = file_of(command_line), model = request.model,
                        stored = find_stored_model(requested, directory)](int world) {
    return resolve(command_line, file, world, model, stored);
  };
  request.micro_batch_in = [settled](int world) -> std::optional<std::int64_t> {
    try {
      return settled(world).options.micro_batch;
    } catch (const ConfigError&) {
      return {};
    }
  };
  try {
    request.config = settled(ranks_of(command_line, request));
  } catch (const ConfigError&) {
    if (context.is_elastic) {
      if (context.rank == 0)
        publish_worlds(context, worlds_that_fit(request.micro_batch_in, context.world), false);
      await_worlds(context);
    }
    throw;
  }
  request.config.options.model = directory;
  require_one_device(command_line.hardware, request);
  return request;
}

}  // namespace strata::train
