// A peer on Boost.Beast, blocking; see README.md.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using Tcp = asio::ip::tcp;
using Stream = websocket::stream<asio::ssl::stream<Tcp::socket>>;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error{what};
}

std::string binary_message() {
  std::string bytes(70000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  return bytes;
}

std::string read(Stream& stream) {
  beast::flat_buffer buffer;
  stream.read(buffer);
  return beast::buffers_to_string(buffer.data());
}

void client(const std::string& port, const std::string& authority) {
  asio::io_context context;
  asio::ssl::context tls{asio::ssl::context::tls_client};
  tls.load_verify_file(authority);
  Stream stream{context, tls};
  stream.next_layer().set_verify_mode(asio::ssl::verify_peer);
  stream.next_layer().set_verify_callback(asio::ssl::host_name_verification{"localhost"});
  stream.next_layer().next_layer().connect(
      {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(std::stoi(port))});
  stream.next_layer().handshake(asio::ssl::stream_base::client);
  stream.handshake("localhost:" + port, "/v1");
  bool ponged = false;
  stream.control_callback([&](websocket::frame_type kind, beast::string_view payload) {
    ponged = ponged || (kind == websocket::frame_type::pong && payload == "beat");
  });
  stream.ping("beat");
  for (const std::string text : {"hello", "gr\u00fc\u00dfe \u2603", ""}) {
    stream.text(true);
    stream.write(asio::buffer(text));
    require(read(stream) == text && stream.got_text(), "a text came back changed");
  }
  const std::string bytes = binary_message();
  stream.binary(true);
  stream.write(asio::buffer(bytes));
  require(read(stream) == bytes && stream.got_binary(), "the binary message came back changed");
  stream.text(true);
  stream.write_some(false, asio::buffer(std::string{"frag"}));
  stream.write_some(false, asio::buffer(std::string{"men"}));
  stream.write_some(true, asio::buffer(std::string{"ted"}));
  require(read(stream) == "fragmented", "the fragments came back changed");
  require(ponged, "the ping was not answered");
  stream.close(websocket::close_reason{static_cast<websocket::close_code>(4000), "done"});
  require(stream.reason().code == 4000, "the close was answered with another code");
}

void server(const std::string& certificate, const std::string& key) {
  asio::io_context context;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  tls.use_certificate_chain_file(certificate);
  tls.use_private_key_file(key, asio::ssl::context::pem);
  Tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};
  std::printf("port %u\n", static_cast<unsigned>(acceptor.local_endpoint().port()));
  std::fflush(stdout);
  Stream stream{acceptor.accept(), tls};
  stream.next_layer().handshake(asio::ssl::stream_base::server);
  stream.accept();
  stream.auto_fragment(true);
  stream.write_buffer_bytes(4096);
  for (;;) {
    beast::flat_buffer buffer;
    beast::error_code error;
    stream.read(buffer, error);
    if (error == websocket::error::closed) break;
    if (error) throw beast::system_error{error};
    stream.text(stream.got_text());
    stream.write(buffer.data());
  }
  std::printf("closed %u %s\n", static_cast<unsigned>(stream.reason().code), stream.reason().reason.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    require(argc == 4, "usage: beast_peer client PORT CA | server CERTIFICATE KEY");
    std::string{argv[1]} == "client" ? client(argv[2], argv[3]) : server(argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "beast_peer: %s\n", error.what());
    return 1;
  }
}
