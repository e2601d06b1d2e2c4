#include "train/planning/drive_wear.h"

#include <fmt/format.h>

#include "core/format_bytes.h"
#include "plan/disk_writes.h"

namespace strata::train {

std::string drive_wear_text(const machine::Disk& disk, double written_per_step,
                            double step_seconds) {
  if (written_per_step <= 0) return "";
  const std::string text =
      fmt::format("it writes {} per step to the drives of a host", format_bytes(written_per_step));
  if (!disk.tbw.known()) return text;  // nothing says how much they bear
  constexpr double kTerabyte = 1e12;
  return fmt::format("{}, which may take {:.6g} TB ({}): worn out after {:.3g} days", text,
                     disk.tbw / kTerabyte, name_of(disk.tbw.source),
                     plan::days_until_written(disk, written_per_step, step_seconds));
}

}  // namespace strata::train
