#include "runtime/core/invocation_router.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "protocol/base/mutant.h"

namespace windlass::runtime {

VersionPool::VersionPool(std::string version_text, bool counts_slots)
    : version(std::move(version_text)), counts_slots_(counts_slots) {}

// 0: no slot is free. 1: an unfit worker with free slots, which is chosen when no other has one. Above: one
// more than the free slots.
std::uint32_t VersionPool::bucket_of(const RouteNode& node) const {
  const std::uint32_t free = node.free();
  if (free == 0) return 0;
  if (node.is_unfit) return 1;
  return counts_slots_ ? std::min(free, kBucketsMax - 2) + 1 : 2;
}

void VersionPool::enter(RouteNode& node) {
  const std::uint32_t bucket = bucket_of(node);
  node.bucket = bucket;
  if (buckets_[bucket].empty()) {
    bits_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
    words_ |= std::uint64_t{1} << (bucket / 64);
  }
  buckets_[bucket].push_back(node);
}

void VersionPool::leave(RouteNode& node) {
  const std::uint32_t bucket = node.bucket;
  buckets_[bucket].erase(node);
  if (!buckets_[bucket].empty()) return;
  std::uint64_t& word = bits_[bucket / 64];
  word &= ~(std::uint64_t{1} << (bucket % 64));
  if (word == 0) words_ &= ~(std::uint64_t{1} << (bucket / 64));
}

void VersionPool::insert(RouteNode& node) {
  node.pool = this;
  ++workers;
  free_ += node.free();
  // For as many as it can ever have free: one that moves finds its bucket there.
  const std::size_t buckets = std::min(node.slots, kBucketsMax - 2) + std::size_t{2};
  if (buckets > buckets_.size()) buckets_.resize(buckets);
  enter(node);
  for (const auto& each : node.lacks) count_lack(each);
}

void VersionPool::count_lack(const std::pair<std::string, std::string>& lack) {
  Lack& known = lacking_[lack.first];
  ++known.workers;
  known.reason = lack.second;
}

void VersionPool::erase(RouteNode& node) {
  leave(node);
  free_ -= node.free();
  --workers;
  node.pool = nullptr;
  for (const auto& [function, reason] : node.lacks) uncount_lack(function);
}

void VersionPool::uncount_lack(const std::string& function) {
  const auto lack = lacking_.find(function);
  if (--lack->second.workers == 0) lacking_.erase(lack);
}

bool RouteNode::has(std::string_view function) const {
  return std::ranges::none_of(lacks, [&](const auto& each) { return each.first == function; });
}

const std::string* VersionPool::load_failure(std::string_view function) const {
  const auto lack = lacking_.find(function);
  const bool is_all =
      lack != lacking_.end() && (lack->second.workers == workers || MUTANT(load_failure_spreads));
  return is_all ? &lack->second.reason : nullptr;
}

// Rare, so it may look at them all.
RouteNode* VersionPool::best_that_has(std::string_view function) const {
  if (load_failure(function) != nullptr) return nullptr;
  if (!lacking_.contains(function)) return best();
  for (std::uint32_t bucket = top(); bucket > 0; --bucket) {
    const Bucket& nodes = buckets_[bucket];
    for (RouteNode* node = nodes.front(); node != nullptr; node = nodes.next(*node)) {
      if (node->has(function)) return node;
    }
  }
  return nullptr;
}

// The one that was just chosen goes to the end of its bucket, so that equals take turns.
void VersionPool::take(RouteNode& node) {
  if (node.free() > 0) --free_;
  ++node.taken;
  move(node);
}

void VersionPool::move(RouteNode& node) {
  leave(node);
  enter(node);
}

void VersionPool::release(RouteNode& node) {
  --node.taken;
  if (node.free() == 0) return;
  ++free_;
  if (!counts_slots_ && node.bucket > 0) return;  // round robin: one that had a slot keeps its turn
  move(node);
}

std::uint32_t VersionPool::top() const {
  if (words_ == 0) return 0;
  const auto word = static_cast<std::uint32_t>(63 - std::countl_zero(words_));
  return word * 64 + static_cast<std::uint32_t>(63 - std::countl_zero(bits_[word]));
}

RouteNode* VersionPool::best() const {
  const std::uint32_t bucket = top();
  return bucket == 0 ? nullptr : buckets_[bucket].front();
}

InvocationRouter::InvocationRouter(RoutingStrategy strategy, std::size_t sticky_keys_max)
    : strategy_(strategy), sticky_keys_max_(std::max<std::size_t>(1, sticky_keys_max)) {}

InvocationRouter::~InvocationRouter() {
  while (!keys_by_use_.empty()) forget(*keys_by_use_.front());
}

void InvocationRouter::add(RouteNode& node, std::string_view code_version) {
  CHECK(node.pool == nullptr);
  VersionPool& pool = pool_of(code_version);
  pool.insert(node);
  if (pool.weight > 0) ++listed_workers_;
}

void InvocationRouter::remove(RouteNode& node) {
  while (!node.keys.empty()) forget(*node.keys.front());
  suspend(node);
}

void InvocationRouter::suspend(RouteNode& node) {
  if (node.pool == nullptr) return;
  VersionPool& pool = *node.pool;
  pool.erase(node);
  if (pool.weight > 0) --listed_workers_;
  if (pool.workers > 0) return;
  std::erase_if(pools_, [&](const auto& held) { return held.get() == &pool; });
}

void InvocationRouter::take(RouteNode& node) {
  if (node.pool != nullptr) return node.pool->take(node);
  ++node.taken;
}

void InvocationRouter::release(RouteNode& node) {
  CHECK(node.taken > 0);
  if (node.pool != nullptr) return node.pool->release(node);
  --node.taken;
}

void InvocationRouter::set_unfit(RouteNode& node, bool is_unfit) {
  if (std::exchange(node.is_unfit, is_unfit) != is_unfit && node.pool != nullptr) node.pool->move(node);
}

RouteNode* InvocationRouter::select(std::string_view function) {
  return split_.empty() ? select_by_load(function) : select_by_weight(function);
}

RouteNode* InvocationRouter::select_sticky(std::string_view key, std::string_view function) {
  if (const auto known = keys_.find(key); known != keys_.end()) {
    StickyKey& sticky = *known->second;
    // One that could not load it is no use for this function, and keeps the key for the others.
    if (!sticky.node->has(function)) return select(function);
    if (!is_out_of_service(sticky.node->pool)) {
      keys_by_use_.erase(sticky);
      keys_by_use_.push_back(sticky);
      return sticky.node;
    }
    forget(sticky);
  }
  RouteNode* const node = select(function);
  if (node == nullptr) return nullptr;
  if (keys_.size() >= sticky_keys_max_) forget(*keys_by_use_.front());
  auto sticky = std::make_unique<StickyKey>();
  sticky->text = std::string{key};
  sticky->node = node;
  node->keys.push_back(*sticky);
  keys_by_use_.push_back(*sticky);
  const std::string_view name = sticky->text;
  keys_.emplace(name, std::move(sticky));
  return node;
}

RouteNode* InvocationRouter::select_by_load(std::string_view function) {
  if (pools_.size() == 1) return pools_.front()->best(function);
  RouteNode* chosen = nullptr;
  const std::size_t count = pools_.size();
  if (++turn_ >= count) turn_ = 0;
  std::size_t at = turn_;
  for (std::size_t i = 0; i < count; ++i, at = at + 1 == count ? 0 : at + 1) {
    RouteNode* const node = pools_[at]->best(function);
    if (node != nullptr && (chosen == nullptr || node->bucket > chosen->bucket)) chosen = node;
  }
  return chosen;
}

void InvocationRouter::add_lack(RouteNode& node, const std::pair<std::string, std::string>& lack) {
  node.lacks.push_back(lack);
  if (node.pool != nullptr) node.pool->count_lack(lack);
}

void InvocationRouter::remove_lacks(RouteNode& node, const std::set<std::string>& functions) {
  std::erase_if(node.lacks, [&](const auto& each) {
    if (!functions.contains(each.first)) return false;
    if (node.pool != nullptr) node.pool->uncount_lack(each.first);
    return true;
  });
}

// Smooth weighted round robin: exact over any run of `total` choices, and never a burst of one version.
RouteNode* InvocationRouter::select_by_weight(std::string_view function) {
  if (listed_workers_ == 0) {
    RouteNode* best = nullptr;
    for (const auto& pool : pools_) {
      RouteNode* const node = pool->is_listed ? nullptr : pool->best(function);
      if (node != nullptr && (best == nullptr || node->bucket > best->bucket)) best = node;
    }
    return best;
  }
  VersionPool* chosen = nullptr;
  std::int64_t total = 0;
  for (const auto& pool : pools_) {
    if (pool->weight == 0 && !MUTANT(router_ignores_zero_weight)) continue;
    if (pool->best(function) == nullptr) continue;
    pool->credit += pool->weight;
    total += pool->weight;
    if (chosen == nullptr || pool->credit > chosen->credit) chosen = pool.get();
  }
  if (chosen == nullptr) return nullptr;
  chosen->credit -= total;
  return chosen->best(function);
}

// Of a version that the split leaves nothing: named without a weight, or not named while one that is has a
// worker.
bool InvocationRouter::is_out_of_service(const VersionPool* pool) const {
  if (pool == nullptr || split_.empty() || pool->weight > 0) return false;
  return pool->is_listed || listed_workers_ > 0;
}

const std::string* InvocationRouter::load_failure(std::string_view function) const {
  const std::string* reason = nullptr;
  for (const auto& pool : pools_) {
    if (is_out_of_service(pool.get())) continue;
    reason = pool->load_failure(function);
    if (reason == nullptr) return nullptr;
  }
  return reason;
}

void InvocationRouter::set_split(std::vector<std::pair<std::string, std::uint32_t>> weights) {
  split_ = std::move(weights);
  listed_workers_ = 0;
  for (const auto& pool : pools_) {
    apply_split(*pool);
    if (pool->weight > 0) listed_workers_ += pool->workers;
  }
  // Keys do not hold on to a version that is to get nothing.
  for (StickyKey* at = keys_by_use_.front(); at != nullptr;) {
    StickyKey& key = *std::exchange(at, keys_by_use_.next(*at));
    if (key.node->pool == nullptr || is_out_of_service(key.node->pool)) forget(key);
  }
}

void InvocationRouter::apply_split(VersionPool& pool) const {
  pool.weight = 0;
  pool.is_listed = false;
  pool.credit = 0;
  for (const auto& [version, weight] : split_) {
    if (version != pool.version) continue;
    pool.weight = weight;
    pool.is_listed = true;
  }
}

std::size_t InvocationRouter::workers() const {
  std::size_t count = 0;
  for (const auto& pool : pools_) count += pool->workers;
  return count;
}

std::uint32_t InvocationRouter::free_slots() const {
  std::uint32_t sum = 0;
  for (const auto& pool : pools_) {
    if (!is_out_of_service(pool.get())) sum += pool->free_slots();
  }
  return sum;
}

VersionPool& InvocationRouter::pool_of(std::string_view code_version) {
  for (const auto& pool : pools_) {
    if (pool->version == code_version) return *pool;
  }
  pools_.push_back(
      std::make_unique<VersionPool>(std::string{code_version}, strategy_ != RoutingStrategy::RoundRobin));
  apply_split(*pools_.back());
  return *pools_.back();
}

void InvocationRouter::forget(StickyKey& key) {
  key.node->keys.erase(key);
  keys_by_use_.erase(key);
  keys_.erase(std::string_view{key.text});
}

}  // namespace windlass::runtime
