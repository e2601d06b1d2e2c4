// Whose certificate a stranger shows: that of another run, or of another program.
#pragma once

#include <string>

namespace strata::launcher {

struct ShownCertificate {
  std::string name;  ///< its common name
  std::string text;  ///< PEM
};
/// Returns the certificate that who listens there shows; "": there is none within two seconds.
ShownCertificate shown_certificate(const std::string& address, int port);

}  // namespace strata::launcher
