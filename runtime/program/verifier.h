// Proves that a Program is safe, independently: it shares no code with the passes that made it.
#pragma once

#include <string>
#include <vector>

#include "runtime/program/program.h"

namespace strata::runtime {

/// Returns the problems found, at most 20; empty if the Program is right. Checks, by vector clocks
/// over the queues:
///  - waits name earlier instructions;
///  - two instructions that touch overlapping bytes, one of them writing, are ordered;
///  - every byte read, predicates included, holds the version of the value that the operand
///    names (graph.h, Value); a write leaves a later version than it finds;
///  - a parameter and each of its optimizer states end with one version in all of their bytes;
///  - no instruction writes a place where it also reads or writes something else, except a
///    result in the very place of an input;
///  - operands agree with their values and lie inside their arena; a root has one address;
///  - persistent values overlap neither one another nor transient ones;
///  - the first instruction of each queue waits for the other queues of the previous Program.
std::vector<std::string> verify(const Program& program);

}  // namespace strata::runtime
