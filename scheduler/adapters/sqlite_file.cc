#include "scheduler/adapters/sqlite_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "protocol/base/check.h"

namespace windlass {
namespace {

constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kApplicationIdAt = 68;
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

Error invalid(const std::string& path, std::string_view what) {
  return {ErrorCode::StoreInvalid, Blame::Local,
          "the store file " + path + " " + std::string{what} +
              "; it was left as it is: name another file or move it away"};
}

Error unreadable(const std::string& path, int number) {
  return {ErrorCode::StoreFailed, Blame::Local,
          "the store file " + path + " cannot be read: " + std::strerror(number)};
}

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

Result<FileKind> look_at(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return FileKind::Absent;
    return unreadable(path, errno);
  }
  if (!S_ISREG(facts.st_mode)) return invalid(path, "is not a regular file");
  if (facts.st_size == 0) return FileKind::Absent;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return unreadable(path, errno);
  std::array<char, kHeaderBytes> header{};
  const ssize_t count = ::read(file, header.data(), header.size());
  const int number = errno;
  ::close(file);
  if (count < 0) return unreadable(path, number);
  if (static_cast<std::size_t>(count) < kHeaderBytes ||
      std::string_view{header.data(), kMagic.size()} != kMagic) {
    return invalid(path, "is not an SQLite database");
  }
  if (big_endian(header.data() + kApplicationIdAt) != kSqliteApplicationId) {
    return invalid(path, "is an SQLite database of another program");
  }
  return FileKind::Ours;
}

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void SqliteStatement::bind(int at, std::string_view text) {
  CHECK(sqlite3_bind_text64(statement_.get(), at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8) ==
        SQLITE_OK);
}

void SqliteStatement::bind_bytes(int at, BytesView bytes) {
  // A null pointer would bind NULL: an empty value is a value.
  const char* const data = bytes.data() == nullptr ? "" : bytes.data();
  CHECK(sqlite3_bind_blob64(statement_.get(), at, data, bytes.size(), SQLITE_STATIC) == SQLITE_OK);
}

void SqliteStatement::bind(int at, std::int64_t number) {
  CHECK(sqlite3_bind_int64(statement_.get(), at, number) == SQLITE_OK);
}

int SqliteStatement::step() {
  const int answer = sqlite3_step(statement_.get());
  if (answer != SQLITE_ROW) reset();
  return answer;
}

void SqliteStatement::reset() {
  sqlite3_reset(statement_.get());
}

std::string_view SqliteStatement::text(int column) const {
  return bytes(column);
}

BytesView SqliteStatement::bytes(int column) const {
  const void* const data = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? BytesView{} : BytesView{static_cast<const char*>(data), size};
}

std::int64_t SqliteStatement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

Result<std::unique_ptr<SqliteFile>> SqliteFile::open(const std::string& path, Mode mode) {
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (mode == Mode::Create ? SQLITE_OPEN_CREATE : 0);
  const int answer = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  // Even a failed open gives a connection that must be closed and knows why.
  auto file = std::unique_ptr<SqliteFile>(new SqliteFile(path, database));
  if (answer != SQLITE_OK) return file->error(answer, "opened");
  return file;
}

SqliteFile::~SqliteFile() {
  sqlite3_close_v2(database_);
}

Result<Done> SqliteFile::run(const std::string& sql) {
  const int answer = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  if (answer != SQLITE_OK) return error(answer, "set up");
  return Done{};
}

Result<std::string> SqliteFile::ask(const std::string& sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const int answer = statement->step();
  if (answer == SQLITE_ROW) return std::string{statement->text(0)};
  if (answer != SQLITE_DONE) return error(answer, "read");
  return std::string{};
}

Result<SqliteStatement> SqliteFile::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int answer = sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (answer != SQLITE_OK) return error(answer, "read");
  return SqliteStatement{statement};
}

bool SqliteFile::is_in_transaction() const {
  return sqlite3_get_autocommit(database_) == 0;
}

void SqliteFile::leave_untouched() {
  sqlite3_db_config(database_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Error SqliteFile::error(int answer, std::string_view doing) const {
  switch (answer & 0xff) {
    case SQLITE_FULL:
      return {ErrorCode::StoreFull, Blame::Local,
              "the store file " + path_ + " cannot grow: the disk or its quota is full; make room"};
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return invalid(path_, "is damaged (" + std::string{sqlite3_errmsg(database_)} + ")");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::StoreFailed, Blame::Local,
              "the store file " + path_ + " is in use by another process; stop that one first"};
    default:
      return {
          ErrorCode::StoreFailed, Blame::Local,
          "the store file " + path_ + " could not be " + std::string{doing} + ": " + sqlite3_errstr(answer)};
  }
}

}  // namespace windlass
