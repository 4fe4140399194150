#include "scheduler/shell/package_desk.h"

#include <utility>

#include "scheduler/core/runtime_text.h"

namespace windlass {

PackageDesk::PackageDesk(EventLoop& loop, std::unique_ptr<PackageStore> store, UsedQuestion is_used,
                         std::size_t part_bytes)
    : loop_(loop),
      store_(std::move(store)),
      is_used_(std::move(is_used)),
      part_bytes_(part_bytes),
      alarm_(loop, [this] { sweep(); }),
      thread_([this] { files_loop_.run(); }) {
  // What an earlier process left behind.
  run([this] { return store_->whole(); },
      [this](const std::vector<std::string>& digests) {
        for (const std::string& digest : digests) {
          if (!is_used_(digest)) unused_.emplace(digest, loop_.now().steady + limits::kPackageUnusedMax);
        }
        sweep();
      });
}

PackageDesk::~PackageDesk() {
  files_loop_.stop();
  thread_.join();
}

// `work` on the files' thread, then `answer` with what it gave on ours.
template <class Work, class Answer>
void PackageDesk::run(Work work, Answer answer) {
  files_loop_.post(
      [this, work = std::move(work), answer = std::move(answer), alive = std::weak_ptr{alive_}]() mutable {
        loop_.post([result = work(), answer = std::move(answer), alive = std::move(alive)]() mutable {
          if (!alive.expired()) answer(std::move(result));
        });
      });
}

void PackageDesk::put(PackagePiece piece, PutHandler handler) {
  if (uploads_ >= limits::kPackageUploadsMax) {
    return handler(Error{ErrorCode::LimitCapacity, Blame::Peer,
                         "too many packages are being uploaded; send the piece again later"});
  }
  ++uploads_;
  const std::string digest = piece.digest;
  run([this, piece = std::move(piece)] { return store_->put(piece); },
      [this, digest, handler = std::move(handler)](Result<PackageProgress> progress) {
        --uploads_;
        if (progress && progress->is_whole) {
          unused_[digest] = loop_.now().steady + limits::kPackageUnusedMax;
          sweep();
        }
        handler(std::move(progress));
      });
}

void PackageDesk::look(const std::string& digest, LookHandler handler) {
  run([this, digest] { return store_->look(digest); },
      [handler = std::move(handler)](PackageProgress progress) { handler(progress); });
}

void PackageDesk::serve(PackageAsked asked, const PartHandler& handler) {
  // No answer, because a refusal would end what the agent does; it asks again by itself when nothing comes.
  if (serving_.size() >= limits::kPackageReadsMax || !serving_.insert(asked.session).second) return;
  const PackageRequest request = asked.request;
  run([this, request] { return store_->read(request.digest, request.offset, part_bytes_); },
      [this, asked = std::move(asked), handler](const Result<PackagePart>& part) {
        serving_.erase(asked.session);
        handler(asked.session, part_message(asked, part));
      });
}

Message PackageDesk::part_message(const PackageAsked& asked, const Result<PackagePart>& part) {
  // The time tells the ids of this process from those of the one before.
  const auto now = loop_.now().wall.time_since_epoch().count();
  const std::string id = "part-" + std::to_string(now) + '.' + std::to_string(++parts_);
  const std::string payload =
      part ? package_part_payload(asked.request, part->total)
           : package_refusal_payload(asked.request, part.error().code, part.error().reason);
  MessageParts parts{.type = "biz.package.part", .id = id, .payload = payload, .corr = asked.corr};
  if (part) parts.attachment = Attachment{"application/octet-stream", part->bytes};
  return Message{parts};
}

void PackageDesk::remove_if_unused(const std::string& digest) {
  if (is_used_(digest)) return;
  unused_[digest] = loop_.now().steady;
  sweep();
}

void PackageDesk::sweep() {
  const Instant now = loop_.now().steady;
  std::optional<Instant> next;
  for (auto at = unused_.begin(); at != unused_.end();) {
    if (is_used_(at->first)) {
      at = unused_.erase(at);
    } else if (at->second <= now) {
      files_loop_.post([this, digest = at->first] { store_->remove(digest); });
      at = unused_.erase(at);
    } else {
      next = next ? std::min(*next, at->second) : at->second;
      ++at;
    }
  }
  alarm_.set(next);
}

}  // namespace windlass
