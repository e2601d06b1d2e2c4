// How tests run kernels, whatever the backend. The backend under test is chosen at link time:
// cpu/cpu_runner.cpp or cuda/host/simulated_runner.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/stream.h"
#include "kernels/ops/operation.h"

namespace strata::kernels {

/// What a backend does with one call; `inputs` and `outputs` lie in host memory.
using Runner = std::function<void(const Operation& operation, std::span<const Tensor> inputs,
                                  std::span<const Tensor> outputs, const Attributes& attributes)>;

struct NamedRunner {
  std::string name;
  Runner run;
};

/// Every way in which the backend under test runs kernels. CPU: each instruction set of the machine
/// and the portable fallback, with 1, 2 and 3 threads. Simulation: three orders of threads.
std::vector<NamedRunner> all_runners();

/// Whether kernels run on a real GPU. One whose kernel traps is of no more use to the process.
bool runs_on_gpu();

/// One of them, for tests that look at a single result.
Runner any_runner();

}  // namespace strata::kernels
