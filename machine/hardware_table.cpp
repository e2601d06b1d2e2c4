#include "machine/hardware_table.h"

#include <algorithm>

#include "core/ascii.h"
#include "machine/hardware_file.h"
#include "machine/hardware_texts.h"  // made by CMake from configs/hardware

namespace strata::machine {

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const HardwareText& file : kHardwareTexts) names.emplace_back(file.name);
  std::ranges::sort(names);
  return names;
}

std::optional<Machine> find_hardware(std::string_view name) {
  for (const HardwareText& file : kHardwareTexts)
    if (same_letters(file.name, name))
      return read_hardware(file.text, std::string(file.name) + ".json");
  return std::nullopt;
}

std::optional<Machine> find_hardware_of_device(std::string_view driver_name, int devices) {
  std::optional<Machine> found;
  for (const HardwareText& file : kHardwareTexts) {
    Machine machine = read_hardware(file.text, std::string(file.name) + ".json");
    if (std::ranges::find(machine.device.names, driver_name) == machine.device.names.end())
      continue;
    if (machine.hosts == 1 && machine.devices == devices) return machine;
    if (!found || machine.hosts * machine.devices < found->hosts * found->devices)
      found = std::move(machine);
  }
  return found;
}

}  // namespace strata::machine
