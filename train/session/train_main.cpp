#include "train/session/programs.h"

int main(int argc, char** argv) { return strata::train::train_program(argc, argv); }
