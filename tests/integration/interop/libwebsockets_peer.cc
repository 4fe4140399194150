// A peer on libwebsockets; see README.md.
#include <libwebsockets.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace {

struct Piece {
  std::string bytes;
  int how = LWS_WRITE_TEXT;
};

struct World {
  bool is_client = false;
  bool over = false;
  bool well = false;
  std::deque<Piece> out;              // still to be written
  std::vector<std::string> expected;  // by a client, in order
  std::size_t matched = 0;
  std::string input;  // of the message that is coming in
  bool ponged = false;
  bool closing = false;
};

std::string binary_message() {
  std::string bytes(70000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  return bytes;
}

void fill_client(World& world) {
  const std::string texts[] = {"hello", "gr\u00fc\u00dfe \u2603", ""};
  for (const auto& text : texts) world.out.push_back({text, LWS_WRITE_TEXT});
  world.out.push_back({binary_message(), LWS_WRITE_BINARY});
  world.out.push_back({"frag", LWS_WRITE_TEXT | LWS_WRITE_NO_FIN});
  world.out.push_back({"men", LWS_WRITE_CONTINUATION | LWS_WRITE_NO_FIN});
  world.out.push_back({"ted", LWS_WRITE_CONTINUATION});
  world.out.push_back({"beat", LWS_WRITE_PING});
  world.expected = {texts[0], texts[1], texts[2], binary_message(), "fragmented"};
}

void end(World& world, bool well) {
  world.over = true;
  world.well = well;
}

int write_next(lws* socket, World& world) {
  if (world.closing) {
    std::array<unsigned char, 4> reason{'d', 'o', 'n', 'e'};
    lws_close_reason(socket, static_cast<lws_close_status>(4000), reason.data(), reason.size());
    return -1;
  }
  if (world.out.empty()) return 0;
  const Piece piece = world.out.front();
  world.out.pop_front();
  std::vector<unsigned char> buffer(LWS_PRE + piece.bytes.size());
  std::copy(piece.bytes.begin(), piece.bytes.end(), buffer.begin() + LWS_PRE);
  if (lws_write(socket, buffer.data() + LWS_PRE, piece.bytes.size(),
                static_cast<lws_write_protocol>(piece.how)) < static_cast<int>(piece.bytes.size())) {
    return -1;
  }
  if (!world.out.empty()) lws_callback_on_writable(socket);
  return 0;
}

void handle_message(lws* socket, World& world, bool binary) {
  if (!world.is_client) {
    world.out.push_back({world.input, binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT});
    lws_callback_on_writable(socket);
  } else if (world.matched < world.expected.size() && world.input == world.expected[world.matched]) {
    ++world.matched;
  } else {
    end(world, false);
  }
  world.input.clear();
}

int callback(lws* socket, lws_callback_reasons reason, void* /*user*/, void* in, std::size_t size) {
  auto& world = *static_cast<World*>(lws_context_user(lws_get_context(socket)));
  switch (reason) {
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
      fill_client(world);
      lws_callback_on_writable(socket);
      break;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
    case LWS_CALLBACK_SERVER_WRITEABLE:
      return write_next(socket, world);
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
      world.ponged = true;
      break;
    case LWS_CALLBACK_CLIENT_RECEIVE:
    case LWS_CALLBACK_RECEIVE:
      world.input.append(static_cast<const char*>(in), size);
      if (lws_remaining_packet_payload(socket) == 0 && lws_is_final_fragment(socket) != 0) {
        handle_message(socket, world, lws_frame_is_binary(socket) != 0);
      }
      break;
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      if (!world.is_client && size >= 2) {
        const auto* const bytes = static_cast<const unsigned char*>(in);
        std::printf("closed %d %.*s\n", bytes[0] * 256 + bytes[1], static_cast<int>(size) - 2,
                    reinterpret_cast<const char*>(bytes + 2));
      }
      break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      std::fprintf(stderr, "libwebsockets_peer: %s\n",
                   in == nullptr ? "no connection" : static_cast<char*>(in));
      end(world, false);
      break;
    case LWS_CALLBACK_CLIENT_CLOSED:
      end(world, world.closing && world.matched == world.expected.size());
      break;
    case LWS_CALLBACK_CLOSED:
      end(world, true);
      break;
    default:
      break;
  }
  if (world.is_client && !world.closing && world.ponged && !world.expected.empty() &&
      world.matched == world.expected.size()) {
    world.closing = true;
    lws_callback_on_writable(socket);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  World world;
  world.is_client = std::string{argv[1]} == "client";
  lws_set_log_level(LLL_ERR, nullptr);
  lws_protocols protocols[2] = {};
  protocols[0].name = "echo";
  protocols[0].callback = callback;
  protocols[0].rx_buffer_size = 4096;
  lws_context_creation_info info{};
  info.protocols = protocols;
  info.user = &world;
  info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
  if (world.is_client) {
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.client_ssl_ca_filepath = argv[3];
  } else {
    info.port = 0;
    info.iface = "127.0.0.1";
    info.ssl_cert_filepath = argv[2];
    info.ssl_private_key_filepath = argv[3];
  }
  lws_context* const context = lws_create_context(&info);
  if (context == nullptr) return 1;
  if (world.is_client) {
    lws_client_connect_info to{};
    to.context = context;
    to.address = "127.0.0.1";
    to.host = "localhost";
    to.origin = nullptr;
    to.path = "/v1";
    to.port = std::atoi(argv[2]);
    to.ssl_connection = LCCSCF_USE_SSL;
    to.local_protocol_name = "echo";
    if (lws_client_connect_via_info(&to) == nullptr) return 1;
  } else {
    std::printf("port %d\n", lws_get_vhost_listen_port(lws_get_vhost_by_name(context, "default")));
    std::fflush(stdout);
  }
  while (!world.over && lws_service(context, 0) >= 0) {
  }
  lws_context_destroy(context);
  return world.well ? 0 : 1;
}
