// A stream for collectives outside a Program: CPU communicators work on the calling thread.
#pragma once

#include "kernels/device/stream.h"

namespace strata::comm {

class HostStream final : public kernels::Stream {};

}  // namespace strata::comm
