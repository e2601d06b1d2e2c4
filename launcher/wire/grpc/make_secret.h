// Makes the secret of a run.
#pragma once

#include "launcher/wire/run_secret.h"

namespace strata::launcher {

/// Makes a token of 256 random bits and a self-signed certificate (ECDSA P-256) that is valid at
/// all times, so that clocks of hosts may differ. Throws HostError if OpenSSL refuses.
RunSecret make_secret();

}  // namespace strata::launcher
