// What `doctor` found, as a page for people and as JSON for machines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/doctor/disk_facts.h"
#include "train/doctor/machine_facts.h"
#include "train/run/copy_speed.h"

namespace strata::train {

struct DeviceFacts {
  std::string description;  ///< name, memory, driver
  kernels::DeviceMemoryFacts memory;
  LinkRates links;
  std::string problem;  ///< why it cannot be used or measured; empty: nothing does
};

struct DoctorReport {
  MachineFacts machine;
  double host_copy_rate = 0;  ///< bytes per second, read plus written, all threads
  std::vector<DeviceFacts> devices;
  std::string why_no_device;  ///< where there is none
  std::vector<DiskFacts> disks;
  std::optional<offload::ProbeResult> striped;  ///< of several disks together
};

/// What stands in the way of speed, each with what to change; empty: nothing.
std::vector<std::string> advice(const DoctorReport& report);

/// One page.
std::string to_text(const DoctorReport& report);
/// Rates in bytes per second, amounts in bytes.
std::string to_json(const DoctorReport& report);

}  // namespace strata::train
