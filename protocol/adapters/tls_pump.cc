#include "protocol/adapters/tls_pump.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "protocol/base/check.h"

namespace windlass {

// The BIO through which OpenSSL reaches the pump's two buffers.
struct PumpBio {
  static TlsPump& pump(BIO* bio) { return *static_cast<TlsPump*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, int size) {
    BIO_clear_retry_flags(bio);
    auto& input = pump(bio).input_;
    const std::size_t count = std::min(input.size(), static_cast<std::size_t>(size));
    if (count == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    std::memcpy(into, input.data(), count);
    input = input.subspan(count);
    return static_cast<int>(count);
  }

  static int write(BIO* bio, const char* from, int size) {
    BIO_clear_retry_flags(bio);
    Bytes* const output = pump(bio).output_;
    CHECK(output != nullptr);
    output->append(from, static_cast<std::size_t>(size));
    return size;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  // One for the process, made once and never changed.
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "windlass");
      CHECK(fresh != nullptr);
      BIO_meth_set_read(fresh, &PumpBio::read);
      BIO_meth_set_write(fresh, &PumpBio::write);
      BIO_meth_set_ctrl(fresh, &PumpBio::control);
      return fresh;
    }();
    return made;
  }
};

TlsPump::TlsPump(SslPointer ssl) : ssl_(std::move(ssl)) {
  CHECK(ssl_ != nullptr);
  BIO* const bio = BIO_new(PumpBio::method());
  CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
}

TlsPump::~TlsPump() = default;

bool TlsPump::has_answered() const {
  return SSL_get_state(ssl_.get()) != TLS_ST_BEFORE;
}

TlsPump::Opened TlsPump::open(std::span<const char> sealed, std::span<char> plain, Bytes& reply) {
  if (!hello_.is_done() && SSL_is_server(ssl_.get()) == 1 && !hello_.handle_bytes(sealed)) {
    failure_ = "the ClientHello is larger than allowed";
    return {State::Failed, 0};
  }
  input_ = sealed;
  output_ = &reply;
  Opened opened;
  if (!is_open_) opened.state = shake_hands();
  while (is_open_ && opened.state == State::More) {
    CHECK(opened.bytes < plain.size());
    const std::size_t room = std::min<std::size_t>(plain.size() - opened.bytes, 1U << 30U);
    ERR_clear_error();
    const int result = SSL_read(ssl_.get(), plain.data() + opened.bytes, static_cast<int>(room));
    if (result <= 0) {
      opened.state = judge(result);
      break;
    }
    opened.bytes += static_cast<std::size_t>(result);
  }
  input_ = {};
  output_ = nullptr;
  return opened;
}

TlsPump::State TlsPump::begin(Bytes& reply) {
  output_ = &reply;
  const State state = shake_hands();
  output_ = nullptr;
  return state;
}

bool TlsPump::seal(BytesView plain, Bytes& sealed) {
  CHECK(is_open_);
  if (!failure_.empty()) return false;
  output_ = &sealed;
  ERR_clear_error();
  const int result = SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size()));
  output_ = nullptr;
  if (result > 0) return true;
  static_cast<void>(judge(result));
  return false;
}

void TlsPump::finish(Bytes& sealed) {
  if (!is_open_ || !failure_.empty()) return;
  output_ = &sealed;
  ERR_clear_error();
  static_cast<void>(SSL_shutdown(ssl_.get()));
  ERR_clear_error();
  output_ = nullptr;
}

TlsPump::State TlsPump::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return judge(result);
  is_open_ = true;
  return State::More;
}

TlsPump::State TlsPump::judge(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return State::More;
    case SSL_ERROR_ZERO_RETURN:
      return State::Ended;
    default:
      break;
  }
  const long verdict = SSL_get_verify_result(ssl_.get());
  failure_ = take_tls_error();
  if (!is_open_ && verdict != X509_V_OK) {
    failure_ += ": ";
    failure_ += X509_verify_cert_error_string(verdict);
  }
  return State::Failed;
}

}  // namespace windlass
