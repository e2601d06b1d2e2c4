// A shared library for the tests of DynamicLibrary; built several times with different numbers.
extern "C" int strata_tiny_number() { return STRATA_TINY_NUMBER; }
