#include "train/session/programs.h"

int main(int argc, char** argv) { return strata::train::generate_program(argc, argv); }
