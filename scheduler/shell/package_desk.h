// Packages between operators who bring them and agents who fetch them. Files are read and written on a thread
// of their own, so that a slow disk holds up nobody's session; what nobody uses is thrown away.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "protocol/adapters/event_loop.h"
#include "scheduler/core/effects.h"
#include "scheduler/seams/package_store.h"

namespace windlass {

namespace limits {

// An uploaded package that no application uses stays this long: its deployment is about to come.
inline constexpr Duration kPackageUnusedMax = seconds{3600};
inline constexpr std::size_t kPackageUploadsMax = 8;  // pieces being written
inline constexpr std::size_t kPackageReadsMax = 256;  // parts being read, one per session

}  // namespace limits

class PackageDesk final {
 public:
  using PutHandler = std::function<void(Result<PackageProgress>)>;
  using LookHandler = std::function<void(PackageProgress)>;
  // Takes the message for the agent.
  using PartHandler = std::function<void(SessionRef session, Message message)>;
  using UsedQuestion = std::function<bool(const std::string& digest)>;

  // All on the loop's thread, and handlers are called there. The loop must outlive the desk.
  PackageDesk(EventLoop& loop, std::unique_ptr<PackageStore> store, UsedQuestion is_used,
              std::size_t part_bytes = limits::kPackagePartBytes);
  ~PackageDesk();
  PackageDesk(const PackageDesk&) = delete;
  PackageDesk& operator=(const PackageDesk&) = delete;

  void put(PackagePiece piece, PutHandler handler);
  void look(const std::string& digest, LookHandler handler);
  // One part of one session at a time: what is asked beyond that is not answered.
  void serve(PackageAsked asked, const PartHandler& handler);
  // It is gone when nobody uses it; one that was just uploaded gets its time.
  void remove_if_unused(const std::string& digest);

 private:
  // Values that posted tasks look at; they may come after the desk is gone.
  struct Alive {};

  void sweep();
  Message part_message(const PackageAsked& asked, const Result<PackagePart>& part);
  template <class Work, class Answer>
  void run(Work work, Answer answer);

  EventLoop& loop_;
  std::unique_ptr<PackageStore> store_;  // its thread's alone
  UsedQuestion is_used_;
  std::size_t part_bytes_;
  std::size_t uploads_ = 0;
  std::set<SessionRef> serving_;
  std::uint64_t parts_ = 0;
  std::map<std::string, Instant> unused_;  // when it may go
  LoopAlarm alarm_;
  // Shared with tasks under way, to find out that the desk is gone.
  std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
  EventLoop files_loop_;
  std::thread thread_;
};

}  // namespace windlass
