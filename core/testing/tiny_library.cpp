// A shared library for tests of opening them; built several times with different numbers.
extern "C" int strata_tiny_number() { return STRATA_TINY_NUMBER; }
