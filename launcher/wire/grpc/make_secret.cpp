#include "launcher/wire/grpc/make_secret.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <string>

#include "core/error.h"
#include "launcher/wire/grpc/stream_metadata.h"

namespace strata::launcher {
namespace {

template <auto kFree>
struct Free {
  template <typename Object>
  void operator()(Object* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;

/// Throws if a call of OpenSSL did not do what it should.
void require(bool done, const char* what) {
  if (done) return;
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  throw HostError(fmt::format("making the run's secret: {}: {}", what, text.data()));
}

std::string text_of(BIO* memory) {
  char* text = nullptr;
  const long length = BIO_get_mem_data(memory, &text);
  return {text, static_cast<std::size_t>(length)};
}

void add_extension(X509& certificate, int kind, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
  require(extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1,
          "an extension");
}

Certificate make_certificate(EVP_PKEY& key) {
  Certificate certificate(X509_new());
  require(certificate != nullptr, "a certificate");
  std::uint64_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "a number");
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const auto* common_name = reinterpret_cast<const unsigned char*>(kCertificateName);
  require(
      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
          ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1) == 1 &&
          ASN1_TIME_set_string(X509_getm_notBefore(certificate.get()), "19700101000000Z") == 1 &&
          ASN1_TIME_set_string(X509_getm_notAfter(certificate.get()), "99991231235959Z") == 1 &&
          X509_set_pubkey(certificate.get(), &key) == 1 &&
          X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common_name, -1, -1, 0) == 1 &&
          X509_set_issuer_name(certificate.get(), name) == 1,
      "a certificate");
  add_extension(*certificate, NID_subject_alt_name, fmt::format("DNS:{}", kCertificateName));
  add_extension(*certificate, NID_basic_constraints, "critical,CA:TRUE");
  require(X509_sign(certificate.get(), &key, EVP_sha256()) > 0, "a signature");
  return certificate;
}

std::string make_token() {
  std::array<unsigned char, 32> bytes{};
  require(RAND_bytes(bytes.data(), bytes.size()) == 1, "a token");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

RunSecret make_secret() {
  const Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "a key");
  const Certificate certificate = make_certificate(*key);
  const Memory certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  require(PEM_write_bio_X509(certificate_text.get(), certificate.get()) == 1 &&
              PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                            nullptr) == 1,
          "text");
  return {make_token(), text_of(certificate_text.get()), text_of(key_text.get())};
}

}  // namespace strata::launcher
