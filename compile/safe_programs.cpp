#include "compile/safe_programs.h"

#include "core/error.h"
#include "runtime/program/verifier.h"

namespace strata::compile {

void require_safe(const StepPrograms& programs) {
  for (const auto& [key, program] : programs.programs)
    if (const auto problems = runtime::verify(program); !problems.empty())
      throw InternalError("Program '" + program.name + "' is not safe to run: " + problems.front());
}

}  // namespace strata::compile
