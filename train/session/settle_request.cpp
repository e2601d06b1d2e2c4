#include "train/session/settle_request.h"

#include <string>

#include "core/error.h"
#include "machine/hardware_override.h"
#include "train/models/hf_config.h"
#include "train/run/find_stored_model.h"
#include "train/run/model_directory.h"

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

RunRequest settle_request(const ParsedCommandLine& command_line, const RankContext& context,
                          std::span<const ModelFamily> own) {
  RunRequest request;
  request.context = context;
  request.own = own;
  if (!command_line.hardware.empty())
    request.hardware = machine::load_overridden_hardware(command_line.hardware);
  const std::string requested = requested_model(command_line);
  const std::string directory = resolve_model_directory(requested);
  request.model = read_model_config(directory, own);
  request.config = resolve(command_line, ranks_of(command_line, request), request.model,
                           find_stored_model(requested, directory));
  request.config.options.model = directory;
  require_one_device(command_line.hardware, request);
  return request;
}

}  // namespace strata::train
