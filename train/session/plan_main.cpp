#include "train/session/programs.h"

int main(int argc, char** argv) { return strata::train::plan_program(argc, argv); }
