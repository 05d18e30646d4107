// Simulated time and physical quantities as types, so that no interface passes a bare number with its unit in
// a comment. Time is integer picoseconds (one byte at 400 Gbit/s is exactly 20 ps; int64 reaches 106 days).
// Rates are doubles in SI. Bits exist only in text ("400 Gbit/s") and in the literals below.
#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>

namespace topsim {

struct SimClock {
  using rep = std::int64_t;
  using period = std::pico;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};
using Duration = SimClock::duration;
using SimTime = SimClock::time_point;

inline constexpr SimTime kNever = SimTime::max();

inline constexpr double kSecondsPerDay = 86400, kDaysPerYear = 365.25;

// A quantity of one dimension: it can be added to and compared with its own kind and scaled by a number; a
// ratio of two is a number.
template <class Tag, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value_ -= other.value_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.value_ / k); }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using Flops = Quantity<struct FlopsTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
using Watts = Quantity<struct WattsTag, double>;
using Metres = Quantity<struct MetresTag, double>;

[[nodiscard]] constexpr double seconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-12;
}
[[nodiscard]] constexpr double microseconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-6;
}
// The longest Duration that a number becomes: rounding a larger one, or none, would be undefined.
inline constexpr double kLongestPicoseconds = 9.2e18;  // the clock ends at 9.223e18

[[nodiscard]] inline Duration from_picoseconds(double ps) {  // nearest
  if (!(ps < kLongestPicoseconds)) ps = kLongestPicoseconds;
  return Duration(std::llround(ps > -kLongestPicoseconds ? ps : -kLongestPicoseconds));
}
[[nodiscard]] inline Duration from_seconds(double s) {
  return from_picoseconds(s * 1e12);
}
[[nodiscard]] inline Duration from_microseconds(double us) {
  return from_picoseconds(us * 1e6);
}

[[nodiscard]] inline Duration operator/(Bytes size, BytesPerSecond rate) {
  return from_seconds(static_cast<double>(size.value()) / rate.value());
}
[[nodiscard]] inline Duration operator/(Flops work, FlopsPerSecond rate) {
  return from_seconds(work.value() / rate.value());
}

namespace literals {
constexpr Duration operator""_ps(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v));
}
constexpr Duration operator""_ns(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v) * 1000);
}
constexpr Duration operator""_us(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v) * 1000000);
}
constexpr Duration operator""_ms(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v) * 1000000000);
}
constexpr Bytes operator""_B(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v));
}
constexpr Bytes operator""_KiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 30);
}
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr BytesPerSecond operator""_GBps(long double v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr BytesPerSecond operator""_Gbitps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9 / 8);
}
}  // namespace literals
}  // namespace topsim
