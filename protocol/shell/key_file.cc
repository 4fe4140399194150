#include "protocol/shell/key_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "protocol/adapters/private_file.h"
#include "protocol/base/check.h"
#include "protocol/crypto/text_encoding.h"

namespace windlass {
namespace {

Error failure(const std::string& path, std::string_view what, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, path + ": " + std::string{what}, where};
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

}  // namespace

SigningKey random_key() {
  return {"k" + base64url_encode(random_bytes(6)), random_bytes(32)};
}

Result<std::vector<SigningKey>> read_keys(const std::string& path) {
  std::ifstream file{path};
  if (!file) return failure(path, std::string{"cannot be read: "} + std::strerror(errno));
  if (const auto is_private = check_private(path); !is_private) return is_private.error();
  std::vector<SigningKey> keys;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.find(' ');
    const auto secret = space == std::string::npos ? std::nullopt : base64url_decode(line.substr(space + 1));
    if (!secret)
      return failure(path, "line " + std::to_string(number) + " must be \"<kid> <secret in base64url>\"");
    keys.push_back({line.substr(0, space), *secret});
  }
  // The authority knows what makes a key good.
  if (const auto checked = TokenAuthority::with_keys(keys); !checked)
    return failure(path, checked.error().reason);
  return keys;
}

Result<std::vector<SigningKey>> read_or_make_keys(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno != EEXIST)
    return failure(path, std::string{"cannot be made: "} + std::strerror(errno));
  if (file < 0) return read_keys(path);
  const SigningKey key = random_key();
  const std::string line = key.kid + " " + base64url_encode(key.secret) + "\n";
  const bool written =
      ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(file) == 0;
  ::close(file);
  if (!written) {
    ::unlink(path.c_str());
    return failure(path, std::string{"cannot be written: "} + std::strerror(errno));
  }
  return read_keys(path);
}

}  // namespace windlass
