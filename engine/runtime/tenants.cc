#include "engine/runtime/tenants.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace stoker {

namespace {

uint64_t Most(const FairClaim& claim) { return std::max(claim.least, claim.need); }

// What it gets where the water stands at `level`.
uint64_t ShareAt(double level, const FairClaim& claim) {
  const double share = level * claim.weight;
  if (share >= static_cast<double>(Most(claim))) return Most(claim);
  return std::max(claim.least, static_cast<uint64_t>(share));
}

bool FitsAt(double level, uint64_t total, std::span<const FairClaim> claims) {
  for (const FairClaim& claim : claims) {
    const uint64_t share = ShareAt(level, claim);
    if (share > total) return false;
    total -= share;
  }
  return true;
}

// The highest level that fits, to the last bit: positive doubles are in the order of their bits.
double Level(uint64_t total, std::span<const FairClaim> claims) {
  uint64_t fits = 0;
  uint64_t beyond = std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity());
  while (beyond - fits > 1) {
    const uint64_t middle = fits + (beyond - fits) / 2;
    (FitsAt(std::bit_cast<double>(middle), total, claims) ? fits : beyond) = middle;
  }
  return std::bit_cast<double>(fits);
}

}  // namespace

std::vector<uint64_t> FairShares(uint64_t total, std::span<const FairClaim> claims) {
  const double level = Level(total, claims);
  std::vector<uint64_t> shares;
  shares.reserve(claims.size());
  for (const FairClaim& claim : claims) {
    shares.push_back(ShareAt(level, claim));
    total -= std::min(total, shares.back());
  }
  for (size_t i = 0; i < claims.size() && total > 0; ++i) {
    if (shares[i] == Most(claims[i])) continue;
    ++shares[i];
    --total;
  }
  return shares;
}

namespace {

// What nobody needs is divided, too, so that a loader may grow before it has asked.
std::vector<uint64_t> WithRoom(uint64_t total, std::vector<FairClaim> claims) {
  std::vector<uint64_t> shares = FairShares(total, claims);
  uint64_t left = total;
  for (uint64_t share : shares) left -= std::min(left, share);
  for (FairClaim& claim : claims) claim = {.weight = claim.weight, .need = left};
  const std::vector<uint64_t> room = FairShares(left, claims);
  for (size_t i = 0; i < shares.size(); ++i) shares[i] += room[i];
  return shares;
}

}  // namespace

std::unique_ptr<Tenants::Tenant> Tenants::Join(double weight, const Need& least) {
  auto tenant = std::make_unique<Tenant>();
  tenant->weight_ = weight;
  tenant->least_ = tenant->need_ = least;
  std::lock_guard lock(mutex_);
  tenants_.push_back(tenant.get());
  tenant->home_ = this;  // from now on it leaves
  Divide();
  return tenant;
}

Tenants::Tenant::~Tenant() {
  if (home_ == nullptr) return;
  std::lock_guard lock(home_->mutex_);
  std::erase(home_->tenants_, this);
  home_->Divide();
}

void Tenants::Tenant::Ask(const Need& need, uint64_t now_ns) {
  std::lock_guard lock(home_->mutex_);
  need_ = need;
  const uint64_t since = asked_ns_ == 0 || now_ns < asked_ns_ ? 0 : now_ns - asked_ns_;
  interval_ns_ = std::max(since, interval_ns_ / 2);
  asked_ns_ = now_ns;
  home_->now_ns_ = std::max(home_->now_ns_, now_ns);
  home_->Divide();
}

bool Tenants::Tenant::Idle(uint64_t now_ns) const {
  constexpr uint64_t kPatience = 2'000'000'000;
  return asked_ns_ != 0 && now_ns > asked_ns_ + kPatience + 8 * interval_ns_;
}

void Tenants::Divide() {
  std::vector<FairClaim> workers;
  std::vector<FairClaim> bytes;
  for (const Tenant* tenant : tenants_) {
    const uint64_t need = tenant->Idle(now_ns_) ? 0 : tenant->need_.workers;
    workers.push_back({tenant->weight_, tenant->least_.workers, need});
    bytes.push_back({tenant->weight_, tenant->least_.batch_bytes, tenant->need_.batch_bytes});
  }
  const std::vector<uint64_t> of_workers =
      WithRoom(static_cast<uint64_t>(std::max(workers_, 0)), workers);
  const std::vector<uint64_t> of_bytes = WithRoom(batch_bytes_(), bytes);
  for (size_t i = 0; i < tenants_.size(); ++i) {
    tenants_[i]->granted_workers_.store(of_workers[i], std::memory_order_relaxed);
    tenants_[i]->granted_bytes_.store(of_bytes[i], std::memory_order_relaxed);
    tenants_[i]->alone_.store(tenants_.size() == 1, std::memory_order_relaxed);
  }
}

}  // namespace stoker
