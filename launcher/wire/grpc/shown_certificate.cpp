#include "launcher/wire/grpc/shown_certificate.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>

#include "core/addresses.h"
#include "core/error.h"
#include "core/unique_fd.h"
#include "launcher/wire/grpc/stream_metadata.h"

namespace strata::launcher {
namespace {

using ProbeClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kProbeLimit{2};

/// Returns false once the time is over.
bool wait_for(const UniqueFd& socket, short events, ProbeClock::time_point end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - ProbeClock::now()).count();
    pollfd entry{socket.get(), events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (left <= 0 || (ready < 0 && errno != EINTR)) return false;
  }
}

UniqueFd connect_to(const std::string& address, int port, ProbeClock::time_point end) {
  const AddressList found = find_addresses(address, port, 0);
  UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool begins =
      socket.valid() &&
      (::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
  return begins && wait_for(socket, POLLOUT, end) ? std::move(socket) : UniqueFd();
}

/// Sends what the handshake has to say, and takes what comes. Returns false if it cannot go on.
bool exchange(SSL& connection, const UniqueFd& socket, ProbeClock::time_point end) {
  std::array<char, 16384> bytes;
  for (int count; (count = BIO_read(SSL_get_wbio(&connection), bytes.data(), bytes.size())) > 0;)
    if (::send(socket.get(), bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL) != count)
      return false;
  if (!wait_for(socket, POLLIN, end)) return false;
  const ssize_t count = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
  return count > 0 && BIO_write(SSL_get_rbio(&connection), bytes.data(), static_cast<int>(count)) ==
                          static_cast<int>(count);
}

std::string common_name_of(const X509& certificate) {
  std::array<char, 256> text{};
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(&certificate), NID_commonName,
                                               text.data(), static_cast<int>(text.size()));
  return {text.data(), static_cast<std::size_t>(std::max(length, 0))};
}

std::string pem_of(const X509& certificate) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), &BIO_free);
  if (!memory || PEM_write_bio_X509(memory.get(), &certificate) != 1) return "";
  char* text = nullptr;
  const long length = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

ShownCertificate shown_certificate(const std::string& address, int port) {
  const ProbeClock::time_point end = ProbeClock::now() + kProbeLimit;
  UniqueFd socket;
  try {
    socket = connect_to(address, port, end);
  } catch (const HostError&) {
    return {};  // the name leads nowhere by now
  }
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> connection(
      context ? SSL_new(context.get()) : nullptr, &SSL_free);
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  if (!socket.valid() || !connection || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    return {};
  }
  SSL_set_bio(connection.get(), in, out);  // it owns both
  (void)SSL_set_tlsext_host_name(connection.get(), kCertificateName);
  // Nothing is verified, as nothing is said: only the certificate is read.
  while (SSL_connect(connection.get()) != 1)
    if (!exchange(*connection, socket, end)) break;
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      SSL_get1_peer_certificate(connection.get()), &X509_free);
  if (!certificate) return {};
  return {common_name_of(*certificate), pem_of(*certificate)};
}

}  // namespace strata::launcher
