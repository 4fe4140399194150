#include "scheduler/adapters/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "protocol/base/check.h"
#include "scheduler/adapters/sqlite_file.h"
#include "scheduler/adapters/sqlite_log.h"

namespace windlass {
namespace {

constexpr std::string_view kSchema = "1";  // of the tables below; a newer one is refused
constexpr std::size_t kLogBytesKept = 16 * 1024 * 1024;

Error failed(const std::string& path, std::string_view doing, int number) {
  return {ErrorCode::StoreFailed, Blame::Local,
          "the store file " + path + " cannot be " + std::string{doing} + ": " + std::strerror(number)};
}

Error damaged(const std::string& path, std::string how) {
  std::ranges::replace(how, '\n', ' ');  // SQLite reports in several lines
  return {ErrorCode::StoreInvalid, Blame::Local,
          "the store file " + path + " is damaged (" + how +
              "); it was left as it is: restore it from a copy or name another file"};
}

// A name in a folder is durable once the folder is.
void sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;  // the file itself is there; a power cut now would at worst lose an empty store
  ::fsync(handle);
  ::close(handle);
}

// Also a file that an earlier version made for everybody to read.
Result<Done> shut_files(const std::string& path) {
  for (const char* const end : {"", "-wal", "-shm"}) {
    if (::chmod((path + end).c_str(), 0600) != 0 && errno != ENOENT)
      return failed(path + end, "closed to others", errno);
  }
  return Done{};
}

// Made aside and renamed, so that under its own name a store is never half made.
Result<Done> create(const std::string& path) {
  const std::string aside = path + ".new";
  if (std::remove(aside.c_str()) != 0 && errno != ENOENT) return failed(aside, "replaced", errno);
  {
    auto file = SqliteFile::open(aside, SqliteFile::Mode::Create);
    if (!file) return file.error();
    const auto made = (*file)->run(
        "PRAGMA synchronous = FULL;"
        "PRAGMA application_id = " +
        std::to_string(kSqliteApplicationId) +
        ";"
        "BEGIN;"
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
        "INSERT INTO meta VALUES ('schema', '" +
        std::string{kSchema} +
        "'), ('version', 0);"
        "CREATE TABLE rows (key TEXT PRIMARY KEY, value BLOB NOT NULL);"
        "COMMIT;"
        "PRAGMA journal_mode = WAL;");
    if (!made) return made.error();
  }
  if (const auto shut = shut_files(aside); !shut) return shut.error();
  if (std::rename(aside.c_str(), path.c_str()) != 0) return failed(path, "created", errno);
  sync_folder_of(path);
  return Done{};
}

std::optional<off_t> log_bytes(const std::string& path) {
  struct stat facts {};
  if (::stat((path + "-wal").c_str(), &facts) != 0) return std::nullopt;
  return facts.st_size;
}

// Everything that can be known to be wrong is found here, before anything is written.
Result<Done> examine(SqliteFile& file, const std::string& path) {
  // One process at a time; also spares the shared memory file.
  if (const auto done = file.run("PRAGMA locking_mode = EXCLUSIVE;"); !done) return done.error();
  const auto check = file.ask("PRAGMA quick_check(1);");
  if (!check) return check.error();
  if (*check != "ok") return damaged(path, *check);
  const auto schema = file.ask("SELECT value FROM meta WHERE name = 'schema';");
  if (!schema) {
    if (schema.error().code != ErrorCode::StoreFailed) return schema.error();
    return damaged(path, "it has no table of ours");
  }
  if (*schema != kSchema) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 "the store file " + path + " has schema version '" + *schema + "' and this program knows '" +
                     std::string{kSchema} + "'; it was left as it is: use the program that wrote it"};
  }
  const auto tables = file.ask("SELECT count(*) FROM sqlite_schema WHERE name IN ('rows', 'meta');");
  if (!tables) return tables.error();
  if (*tables != "2") return damaged(path, "a table is missing");
  return Done{};
}

Result<Done> configure(SqliteFile& file, const SqliteOptions& options) {
  const auto mode = file.ask("PRAGMA journal_mode = WAL;");
  if (!mode) return mode.error();
  std::string sql = "PRAGMA synchronous = ";
  sql += options.sync == StoreSync::Full ? "FULL;" : "NORMAL;";
  sql += "PRAGMA journal_size_limit = " + std::to_string(kLogBytesKept) + ";";
  if (options.pages_max) sql += "PRAGMA max_page_count = " + std::to_string(*options.pages_max) + ";";
  return file.run(sql);
}

}  // namespace

struct SqliteStore::Connection {
  std::unique_ptr<SqliteFile> file;
  // Destroyed before the file that they belong to.
  SqliteStatement begin, commit, rollback, version, set_version, put, erase, all;

  Result<Done> prepare();
  Result<Version> read_version();
  Result<Done> write(const WriteBatch& batch, Version version);
  Result<Done> step(SqliteStatement& statement, std::string_view doing);
};

Result<Done> SqliteStore::Connection::prepare() {
  const std::pair<SqliteStatement*, std::string_view> statements[] = {
      {&begin, "BEGIN IMMEDIATE"},
      {&commit, "COMMIT"},
      {&rollback, "ROLLBACK"},
      {&version, "SELECT value FROM meta WHERE name = 'version'"},
      {&set_version, "UPDATE meta SET value = ?1 WHERE name = 'version'"},
      {&put, "INSERT INTO rows VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"},
      {&erase, "DELETE FROM rows WHERE key = ?1"},
      {&all, "SELECT key, value FROM rows ORDER BY key"},
  };
  for (const auto& [statement, sql] : statements) {
    auto made = file->prepare(sql);
    if (!made) return made.error();
    *statement = std::move(*made);
  }
  return Done{};
}

Result<Done> SqliteStore::Connection::step(SqliteStatement& statement, std::string_view doing) {
  const int answer = statement.step();
  if (answer != SQLITE_DONE) return file->error(answer, doing);
  return Done{};
}

Result<Version> SqliteStore::Connection::read_version() {
  const int answer = version.step();
  if (answer != SQLITE_ROW) return file->error(answer == SQLITE_DONE ? SQLITE_CORRUPT : answer, "read");
  const Version value{static_cast<std::uint64_t>(version.number(0))};
  version.reset();
  return value;
}

Result<Done> SqliteStore::Connection::write(const WriteBatch& batch, Version next) {
  for (const Write& each : batch) {
    SqliteStatement& statement = each.value ? put : erase;
    statement.bind(1, each.key);
    if (each.value) statement.bind_bytes(2, *each.value);
    if (const auto done = step(statement, "written"); !done) return done.error();
  }
  set_version.bind(1, static_cast<std::int64_t>(next.value()));
  return step(set_version, "written");
}

SqliteStore::SqliteStore(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const SqliteOptions& options) {
  const auto kind = look_at(options.path);
  if (!kind) return kind.error();
  if (*kind == FileKind::Absent) {
    if (const auto made = create(options.path); !made) return made.error();
  } else if (const auto shut = shut_files(options.path); !shut) {
    return shut.error();
  } else if (const auto fine = look_at_log(options.path, options.sync); !fine) {
    return fine.error();
  }
  const bool had_log = log_bytes(options.path).has_value();
  auto file = SqliteFile::open(options.path, SqliteFile::Mode::Existing);
  if (!file) return file.error();
  if (const auto fine = examine(**file, options.path); !fine) {
    (*file)->leave_untouched();
    file->reset();
    // Reading makes an empty log where there was none.
    if (!had_log && log_bytes(options.path) == 0) std::remove((options.path + "-wal").c_str());
    return fine.error();
  }
  if (const auto done = configure(**file, options); !done) return done.error();
  auto connection = std::make_unique<Connection>();
  connection->file = std::move(*file);
  if (const auto done = connection->prepare(); !done) return done.error();
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(connection)));
}

Result<Snapshot> SqliteStore::load() {
  Connection& at = *connection_;
  const auto version = at.read_version();
  if (!version) return version.error();
  Snapshot snapshot{*version, {}};
  int answer = at.all.step();
  for (; answer == SQLITE_ROW; answer = at.all.step()) {
    snapshot.rows.push_back({std::string{at.all.text(0)}, Bytes{at.all.bytes(1)}});
  }
  if (answer != SQLITE_DONE) return at.file->error(answer, "read");
  return snapshot;
}

Result<Version> SqliteStore::commit(const WriteBatch& batch, Version expected) {
  Connection& at = *connection_;
  if (const auto begun = at.step(at.begin, "written"); !begun) return begun.error();
  // Whatever goes wrong from here on, the transaction is taken back; SQLite may have done so itself.
  const auto give_up = [&at](Error error) -> Result<Version> {
    if (at.file->is_in_transaction()) at.rollback.step();
    return error;
  };
  const auto version = at.read_version();
  if (!version) return give_up(version.error());
  if (*version != expected) {
    return give_up({ErrorCode::StoreStale, Blame::Local,
                    "the store is at version " + std::to_string(version->value()) + ", not at " +
                        std::to_string(expected.value()) + ": another scheduler writes to it"});
  }
  const Version next{expected.value() + (batch.empty() ? 0 : 1)};
  if (!batch.empty()) {
    if (const auto written = at.write(batch, next); !written) return give_up(written.error());
  }
  if (const auto committed = at.step(at.commit, "written"); !committed) return give_up(committed.error());
  return next;
}

// Free pages and the log keep what was in them, until they are written anew.
Result<Done> SqliteStore::scrub() {
  return connection_->file->run("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);");
}

}  // namespace windlass
