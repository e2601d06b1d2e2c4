#include "launcher/wire/grpc/channel.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "launcher/wire/grpc/shown_certificate.h"
#include "launcher/wire/grpc/stream_metadata.h"

namespace strata::launcher {
namespace {

constexpr int kFirstBackoffMs = 100, kMostBackoffMs = 1000;
// A coordinator that has lost its power ends no connection: its silence does.
constexpr int kPingEveryMs = 2000, kPingTimeoutMs = 3000;

/// gRPC tells of reasons of the system and of OpenSSL only in words.
bool tells(const grpc::Status& status, std::string_view words) {
  return status.error_message().find(words) != std::string::npos;
}

}  // namespace

std::shared_ptr<grpc::Channel> make_channel(const ChannelSettings& settings) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = settings.certificate;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kCertificateName);
  arguments.SetMaxReceiveMessageSize(settings.most_bytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMostBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMostBackoffMs);
  return grpc::CreateCustomChannel(settings.target, grpc::SslCredentials(options), arguments);
}

std::optional<OtherSecret> secret_that_differs(const grpc::Status& status,
                                               const ListeningPlace& place) {
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) return OtherSecret{"token"};
  if (!tells(status, "certificate verify failed")) return {};
  ShownCertificate shown = shown_certificate(place.address, place.port);
  if (shown.name != kCertificateName) return {};
  return OtherSecret{"certificate", std::move(shown.text)};
}

std::string reason_of(const grpc::Status& status) {
  if (status.ok() || tells(status, "Socket closed")) return "it ended the connection";
  if (tells(status, "Connection refused")) return "nobody listens there";
  constexpr auto kOfTls = std::to_array<std::string_view>({"SSL_ERROR", "Handshake", "handshake"});
  if (std::ranges::any_of(kOfTls, [&](std::string_view words) { return tells(status, words); }))
    return "what answers there is not mlaunch";
  if (tells(status, "DNS resolution failed") || tells(status, "Name or service not known"))
    return "this host's DNS does not know the name; is it right? A name of a cluster may be known "
           "some seconds after its host has started";
  if (tells(status, "No route to host") || tells(status, "Network is unreachable"))
    return "no network leads there";
  if (tells(status, "imed out") || tells(status, "imeout") || tells(status, "Deadline Exceeded"))
    return "nothing answers there";
  return status.error_message();
}

}  // namespace strata::launcher
