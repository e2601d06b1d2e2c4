// Reports what `doctor` found, as a page for people and as JSON for programs.
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
  std::string name;         ///< the driver's name for it
  kernels::DeviceCapabilities capabilities;
  kernels::DeviceMemoryFacts memory;
  machine::Link link;
  std::string problem;  ///< why it cannot be used or measured; empty: it can
};

struct DoctorReport {
  /// This host, with its CPU as the device, and what was measured on it.
  machine::Machine host;
  HostState state;
  std::vector<DeviceFacts> devices;
  std::string why_no_device;  ///< reason, if there is no device
  std::vector<DiskFacts> disks;
  std::optional<machine::Disk> striped;  ///< several disks used together
};

/// The machine that a run would have here, with the GPUs and disks that were measured.
machine::Machine machine_of(const DoctorReport& report);

/// Lists what limits speed, each with what to change; empty: nothing.
std::vector<std::string> advice(const DoctorReport& report);

/// The report as one page of text.
std::string to_text(const DoctorReport& report);
/// The report as JSON; rates in bytes per second, amounts in bytes.
std::string to_json(const DoctorReport& report);

}  // namespace strata::train
