// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/clock_fit.h"

#include <algorithm>
#include <cmath>

#include "tools/analysis/statistics.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kForDrift = 8;        // collectives, with fewer a clock has an offset alone
constexpr double kSpanForDrift = 2e6;  // ns between the first and the last one
constexpr double kStandsOut = 5;       // times the median distance from the line
constexpr double kLeastSpread = 100;   // ns: what is closer is no outlier
constexpr int kRounds = 3;             // of the mean of all hosts against each host
constexpr double kErrors = 3;          // standard errors that are stated

struct Point {
  double x, y;  // ns since the origin; what the clock shows beyond the common one
};

struct Fit {
  double mean_x = 0, mean_y = 0, slope = 0;
  double spread = 0;  // standard deviation about the line
  double sxx = 0;
  size_t count = 0;

  double at(double x) const { return mean_y + slope * (x - mean_x); }
  double error_at(double x) const {
    if (count == 0) return 0;
    const double leverage = slope != 0 && sxx > 0 ? (x - mean_x) * (x - mean_x) / sxx : 0;
    return spread * std::sqrt(1 / static_cast<double>(count) + leverage);
  }
};

Fit line_through(const std::vector<Point>& points) {
  Fit out;
  out.count = points.size();
  if (points.empty()) return out;
  const auto n = static_cast<double>(points.size());
  double low = points[0].x, high = points[0].x;
  for (const Point& point : points) {
    out.mean_x += point.x / n;
    out.mean_y += point.y / n;
    low = std::min(low, point.x);
    high = std::max(high, point.x);
  }
  double sxy = 0, squares = 0;
  for (const Point& point : points) {
    out.sxx += (point.x - out.mean_x) * (point.x - out.mean_x);
    sxy += (point.x - out.mean_x) * (point.y - out.mean_y);
  }
  const bool drifts = points.size() >= kForDrift && high - low >= kSpanForDrift;
  if (drifts) out.slope = sxy / out.sxx;
  for (const Point& point : points) {
    squares += (point.y - out.at(point.x)) * (point.y - out.at(point.x));
  }
  out.spread = std::sqrt(squares / std::max(1.0, n - (drifts ? 2 : 1)));
  return out;
}

// Once more without what stands out.
Fit robust_line(std::vector<Point> points) {
  Fit fit = line_through(points);
  for (int round = 0; round < 3 && points.size() > kForDrift; ++round) {
    std::vector<double> distances;
    for (const Point& point : points) distances.push_back(std::abs(point.y - fit.at(point.x)));
    const double limit = kStandsOut * std::max(kLeastSpread, quantile(distances, 0.5));
    const size_t before = points.size();
    std::erase_if(points,
                  [&](const Point& point) { return std::abs(point.y - fit.at(point.x)) > limit; });
    if (points.size() == before || points.size() < 3) break;
    fit = line_through(points);
  }
  return fit;
}

class Fitter {
 public:
  Fitter(const std::vector<JointEnds>& collectives, size_t hosts)
      : collectives_(collectives), lines_(hosts), known_(hosts, false) {
    known_[0] = true;
    if (!collectives.empty()) origin_ = collectives[0].base;
  }

  std::vector<ClockFit> run(const std::vector<HostTime>& times) {
    // Hosts that share collectives with the first one, then those that share some with these.
    while (fit_all(false)) {
    }
    for (int round = 0; round < kRounds; ++round) fit_all(true);
    return against_first(times);
  }

 private:
  // Lines of the hosts that are known, anew, or of those that are not but can be. Whether any is.
  bool fit_all(bool known) {
    std::vector<std::vector<Point>> points(lines_.size());
    for (const JointEnds& collective : collectives_) {
      const auto base = static_cast<double>(collective.base - origin_);
      // When it ended by the first host's clock, of which lines are a function: `base` is any
      // one's.
      double at = base, ended = base;
      size_t count = 0;
      for (int round = 0; round < 2; ++round) {
        double sum = 0;
        count = 0;
        for (const auto& [host, after] : collective.ends) {
          if (!known_[host]) continue;
          sum += base + after - lines_[host].at(at);
          ++count;
        }
        if (count) at = ended = sum / static_cast<double>(count);
      }
      if (count == 0 || (known && count < 2)) continue;
      for (const auto& [host, after] : collective.ends) {
        if (known_[host] == known) points[host].push_back({ended, base + after - ended});
      }
    }
    bool any = false;
    for (size_t host = 0; host < lines_.size(); ++host) {
      if (points[host].empty()) continue;
      lines_[host] = robust_line(std::move(points[host]));
      any = any || !known_[host];
      known_[host] = true;
    }
    return any;
  }

  // How much larger the spread about the clock of one host is than that about the mean of all.
  double spread_against_one() const {
    double hosts = 0;
    for (const JointEnds& collective : collectives_) {
      hosts += static_cast<double>(collective.ends.size());
    }
    hosts /= static_cast<double>(std::max<size_t>(1, collectives_.size()));
    return std::sqrt(hosts / std::max(1.0, hosts - 1));
  }

  std::vector<ClockFit> against_first(const std::vector<HostTime>& times) const {
    const double against_one = spread_against_one();
    std::vector<ClockFit> out(lines_.size());
    for (size_t host = 1; host < lines_.size(); ++host) {
      const Fit &own = lines_[host], &first = lines_[0];
      if (!known_[host] || own.count < 2) continue;
      ClockFit& fit = out[host];
      fit.collectives = own.count;
      // As a function of the host's own time t = x + offset + drift * x.
      const double offset = own.at(0) - first.at(0), drift = own.slope - first.slope;
      fit.line = {origin_, offset / (1 + drift), drift / (1 + drift)};
      const auto error = [&](int64_t time) {
        const auto x = static_cast<double>(fit.line.corrected(time) - origin_);
        return std::hypot(own.error_at(x), first.error_at(x)) * against_one;
      };
      fit.error_ns = kErrors * std::max(error(times[host].begin), error(times[host].end)) + 1;
    }
    return out;
  }

  const std::vector<JointEnds>& collectives_;
  std::vector<Fit> lines_;
  std::vector<bool> known_;
  int64_t origin_ = 0;
};

}  // namespace

std::vector<ClockFit> fit_clocks(const std::vector<JointEnds>& collectives,
                                 const std::vector<HostTime>& hosts) {
  if (hosts.empty()) return {};
  return Fitter(collectives, hosts.size()).run(hosts);
}

}  // namespace gpuprof::analysis
