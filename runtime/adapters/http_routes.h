// Which function a path and a method mean. Routes are written as ASP.NET's: literals, {param}, {param:int},
// {param?}, {param=default}, {*rest}, {name}.{ext?}. Pure: no sockets here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/result.h"
#include "runtime/adapters/route_constraint.h"

namespace windlass::runtime {

using RouteParams = std::vector<std::pair<std::string, std::string>>;

class Route final {
 public:
  static constexpr std::size_t kConstraintsMax = 64;  // of one route

  // An error is one sentence about the template.
  static Result<Route> parse(std::string_view text);
  // `segments` are decoded; an empty one is no parameter's value. Literals are compared without regard to
  // case.
  std::optional<RouteParams> match(const std::vector<std::string>& segments) const;
  std::size_t patterns() const { return patterns_; }  // regular expressions, each with memory of its own
  // The more exact of two routes that match comes first.
  friend bool operator<(const Route& one, const Route& other) { return one.rank_ < other.rank_; }

 private:
  struct Part {
    std::string text;  // a literal, or a parameter's name
    bool is_param = false;
    bool is_optional = false;
    std::vector<RouteConstraint> constraints = {};
  };
  struct Segment {
    std::vector<Part> parts;
    bool is_optional = false;  // the whole of it may be missing
    bool is_rest = false;
    std::optional<std::string> fallback = {};
    std::size_t constraints = 0;
    std::size_t patterns = 0;
  };
  static Result<Segment> parse_segment(std::string_view text);
  static Result<Part> parse_param(std::string_view text, Segment& segment);
  static bool take(const Part& part, std::string_view value, RouteParams& params);
  static std::optional<std::vector<std::string_view>> split(std::span<const Part> parts,
                                                            std::string_view value);
  static bool match(const Segment& segment, std::string_view value, RouteParams& params);

  std::vector<Segment> segments_;
  std::string rank_;
  std::size_t patterns_ = 0;
};

struct RouteEntry {
  Route route;
  std::vector<std::string> methods;  // upper case; empty: all
  std::size_t target = 0;            // the owner's
};

class RouteTable final {
 public:
  void add(RouteEntry entry);

  struct Found {
    std::optional<std::size_t> target;  // none: see `allowed`
    RouteParams params;
    std::vector<std::string> allowed;  // methods of routes that match the path alone; empty: nothing does
  };
  Found find(const std::vector<std::string>& segments, std::string_view method) const;
  std::size_t size() const { return entries_.size(); }

 private:
  std::vector<RouteEntry> entries_;  // the most exact first; of equals the one that was there first
};

}  // namespace windlass::runtime
