// What `doctor` found, as a page for people and as JSON for machines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/device/device.h"
#include "machine/machine.h"
#include "train/doctor/disk_facts.h"
#include "train/doctor/host_state.h"

namespace strata::train {

struct DeviceFacts {
  std::string description;  ///< name, memory, driver
  std::string name;         ///< as the driver spells it
  kernels::DeviceCapabilities capabilities;
  kernels::DeviceMemoryFacts memory;
  machine::Link link;
  std::string problem;  ///< why it cannot be used or measured; empty: nothing does
};

struct DoctorReport {
  /// This host, whose CPU plays the device, and what was measured of it.
  machine::Machine host;
  HostState state;
  std::vector<DeviceFacts> devices;
  std::string why_no_device;  ///< where there is none
  std::vector<DiskFacts> disks;
  std::optional<machine::Disk> striped;  ///< of several disks together
};

/// The machine that a run would have here: with the GPUs and disks that were measured.
machine::Machine machine_of(const DoctorReport& report);

/// What stands in the way of speed, each with what to change; empty: nothing.
std::vector<std::string> advice(const DoctorReport& report);

/// One page.
std::string to_text(const DoctorReport& report);
/// Rates in bytes per second, amounts in bytes.
std::string to_json(const DoctorReport& report);

}  // namespace strata::train
