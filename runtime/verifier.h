// An independent proof that a Program is safe: it shares no code with the passes that made it.
#pragma once

#include <string>
#include <vector>

#include "runtime/program.h"

namespace strata::runtime {

/// Problems found, empty when the Program is right. Checks, by vector clocks over the queues:
///  - waits name earlier instructions;
///  - two instructions that touch overlapping bytes, one of them writing, are ordered;
///  - every byte read, predicates included, was written before by the same root value in an
///    instruction that cannot be skipped, or is persistent;
///  - operands are as large as their types and lie inside their arena; a root has one address;
///  - persistent values overlap neither one another nor transient ones;
///  - the first instruction of each queue waits for the other queues of the previous Program.
/// At most 20 problems are listed.
std::vector<std::string> verify(const Program& program);

}  // namespace strata::runtime
