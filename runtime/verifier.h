// An independent proof that a Program is safe: it shares no code with the passes that made it.
#pragma once

#include <string>
#include <vector>

#include "runtime/program.h"

namespace strata::runtime {

/// Problems found, empty when the Program is right. Checks, by vector clocks over the queues:
///  - waits name earlier instructions;
///  - two instructions that touch overlapping bytes, one of them writing, are ordered;
///  - every byte read was written before by the same root value, or is persistent;
///  - a root lies at one place throughout, and persistent roots apart from each other;
///  - operands lie inside their arena, transient writes outside persistent storage's other values;
///  - the first instruction of each queue waits for the other queues of the previous Program.
/// At most 20 problems are listed.
std::vector<std::string> verify(const Program& program);

}  // namespace strata::runtime
