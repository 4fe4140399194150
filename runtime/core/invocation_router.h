// Chooses a worker for an invocation, in the same few steps for ten workers and for ten thousand: workers are
// kept in buckets by how many slots they have free, one set of buckets per code version. One router per
// JobHost. Knows nothing of invocations; who is not Ready is not in here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/intrusive_list.h"
#include "runtime/core/options.h"

namespace windlass::runtime {

class VersionPool;
class Worker;
struct StickyKey;
struct RouteNode;

struct StickyKey {
  std::string text;
  RouteNode* node = nullptr;
  ListLink<StickyKey> of_node;
  ListLink<StickyKey> by_use;
};

// A worker as the router sees it; lies in the worker. Slots taken are counted also while it is in no router.
struct RouteNode {
  explicit RouteNode(Worker& worker) : owner(&worker) {}
  RouteNode(const RouteNode&) = delete;
  RouteNode& operator=(const RouteNode&) = delete;
  std::uint32_t free() const { return taken < slots ? slots - taken : 0; }

  Worker* owner;
  std::uint32_t slots = 0;
  std::uint32_t taken = 0;
  std::uint32_t bucket = 0;
  bool is_unfit = false;        // short of memory or disk, or not well by its own word: chosen last
  VersionPool* pool = nullptr;  // in a router when set
  std::vector<std::pair<std::string, std::string>> lacks = {};  // functions it could not load, and why
  bool has(std::string_view function) const;
  ListLink<RouteNode> link = {};
  IntrusiveList<StickyKey, &StickyKey::of_node> keys = {};
};

// The ready workers of one code version.
class VersionPool final {
 public:
  static constexpr std::uint32_t kBucketsMax = 4096;

  VersionPool(std::string version_text, bool counts_slots);
  VersionPool(const VersionPool&) = delete;
  VersionPool& operator=(const VersionPool&) = delete;

  void insert(RouteNode& node);
  void erase(RouteNode& node);
  void take(RouteNode& node);
  void release(RouteNode& node);
  void count_lack(const std::pair<std::string, std::string>& lack);
  void uncount_lack(const std::string& function);
  void move(RouteNode& node);  // to the bucket that it belongs in now
  std::uint32_t top() const;   // the highest bucket with a worker in it; 0: none has a slot
  // The one with most slots free that can run it; nullptr: none that can has a slot.
  RouteNode* best(std::string_view function) const {
    return lacking_.empty() ? best() : best_that_has(function);
  }
  std::uint32_t free_slots() const { return free_; }
  // Why none of them can run it; nullptr: one can.
  const std::string* load_failure(std::string_view function) const;

  const std::string version;
  std::uint32_t weight = 0;
  bool is_listed = false;  // in the split
  std::int64_t credit = 0;
  std::size_t workers = 0;

 private:
  using Bucket = IntrusiveList<RouteNode, &RouteNode::link>;

  std::uint32_t bucket_of(const RouteNode& node) const;
  void enter(RouteNode& node);
  void leave(RouteNode& node);
  RouteNode* best() const;
  RouteNode* best_that_has(std::string_view function) const;

  const bool counts_slots_;  // else only whether one is free: round robin
  std::vector<Bucket> buckets_ = std::vector<Bucket>(3);
  std::uint32_t free_ = 0;
  struct Lack {
    std::size_t workers = 0;
    std::string reason;  // the last
  };
  std::map<std::string, Lack, std::less<>> lacking_;  // by function name
  std::uint64_t words_ = 0;                           // which of `bits_` are not 0
  std::array<std::uint64_t, kBucketsMax / 64> bits_{};
};

class InvocationRouter final {
 public:
  InvocationRouter(RoutingStrategy strategy, std::size_t sticky_keys_max);
  ~InvocationRouter();
  InvocationRouter(const InvocationRouter&) = delete;
  InvocationRouter& operator=(const InvocationRouter&) = delete;

  void add(RouteNode& node, std::string_view code_version);
  // For good: keys that went to it go elsewhere.
  void remove(RouteNode& node);
  // For a while: its keys wait for it.
  void suspend(RouteNode& node);
  static void take(RouteNode& node);
  static void release(RouteNode& node);
  static void set_unfit(RouteNode& node, bool is_unfit);
  // One more function that it cannot run, and why.
  static void add_lack(RouteNode& node, const std::pair<std::string, std::string>& lack);
  // Functions of these names are no more.
  static void remove_lacks(RouteNode& node, const std::set<std::string>& functions);

  // The worker for one more invocation of a function, or nullptr when none that may have it has a free slot.
  RouteNode* select(std::string_view function);
  // Likewise for a key: where it went before, while that worker is here, even if it has no free slot.
  RouteNode* select_sticky(std::string_view key, std::string_view function);
  // Why no worker of any version can run it; nullptr when one can or none is here.
  const std::string* load_failure(std::string_view function) const;

  // Versions not named get invocations only while none of those named with a weight has a worker.
  void set_split(std::vector<std::pair<std::string, std::uint32_t>> weights);
  const std::vector<std::pair<std::string, std::uint32_t>>& split() const { return split_; }

  std::size_t workers() const;
  std::uint32_t free_slots() const;  // that an invocation may get
  // Whether its version gets invocations; one that is not here does not.
  bool is_in_service(const RouteNode& node) const {
    return node.pool != nullptr && !is_out_of_service(node.pool);
  }
  const std::vector<std::unique_ptr<VersionPool>>& pools() const { return pools_; }

 private:
  VersionPool& pool_of(std::string_view code_version);
  bool is_out_of_service(const VersionPool* pool) const;
  RouteNode* select_by_load(std::string_view function);
  RouteNode* select_by_weight(std::string_view function);
  void apply_split(VersionPool& pool) const;
  void forget(StickyKey& key);

  const RoutingStrategy strategy_;
  const std::size_t sticky_keys_max_;
  std::vector<std::unique_ptr<VersionPool>> pools_;
  std::vector<std::pair<std::string, std::uint32_t>> split_;
  std::size_t turn_ = 0;
  std::size_t listed_workers_ = 0;  // of versions with a weight
  std::unordered_map<std::string_view, std::unique_ptr<StickyKey>> keys_;
  IntrusiveList<StickyKey, &StickyKey::by_use> keys_by_use_;
};

}  // namespace windlass::runtime
