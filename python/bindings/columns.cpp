#include "python/bindings/columns.hpp"

#include <pybind11/stl.h>

#include <map>

#include "sim/executor/outcome.hpp"
#include "sim/report/si.hpp"

namespace topsim::python {
namespace {
using report::CounterSample;
using report::IdleSlice;
using report::Slice;
using report::Timeline;

std::vector<std::string> devices(const Timeline& timeline) {
  std::vector<std::string> names;
  for (const report::Lane& lane : timeline.lanes) names.push_back(lane.device);
  return names;
}

// Numbers distinct words in the order of their first use.
class Words {
 public:
  std::uint32_t operator()(std::string_view word) {
    const auto [at, is_new] = numbers_.try_emplace(std::string(word), list_.size());
    if (is_new) list_.emplace_back(word);
    return static_cast<std::uint32_t>(at->second);
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::vector<std::string> list_;
};

template <class Rows, class Text>
py::tuple column_of_text(const Rows& rows, const Text& text) {
  Words words;
  const py::tuple plain = column<std::uint32_t>(rows, [&](const auto& row) { return words(text(row)); });
  return py::make_tuple(plain[0], plain[1], py::cast(words.list()));
}
}  // namespace

py::dict slice_columns(const Timeline& t) {
  const auto lane = [&](const Slice& s) -> const report::Lane& { return t.lanes[s.lane]; };
  py::dict columns;
  columns["rank"] = column<std::uint32_t>(t.slices, [&](const Slice& s) { return lane(s).rank; });
  columns["count"] = column<std::uint32_t>(t.slices, [&](const Slice& s) { return lane(s).count; });
  columns["device"] = column_of_words(
      t.slices, [](const Slice& s) { return s.lane; }, devices(t));
  columns["stream"] = column_of_text(t.slices, [&](const Slice& s) { return lane(s).streams[s.stream]; });
  columns["what"] = column_of_words(
      t.slices, [](const Slice& s) { return s.name; }, t.names);
  columns["phase"] = column_of_text(t.slices, [](const Slice& s) { return s.phase; });
  columns["step"] = column<std::uint32_t>(t.slices, [](const Slice& s) { return s.step; });
  columns["begin"] = column<double>(t.slices, [](const Slice& s) { return report::si(s.begin); });
  columns["ready"] = column<double>(t.slices, [](const Slice& s) { return report::si(s.ready); });
  columns["end"] = column<double>(t.slices, [](const Slice& s) { return report::si(s.end); });
  columns["flow"] = column<std::uint64_t>(t.slices, [](const Slice& s) { return s.flow; });
  return columns;
}

py::dict idle_columns(const Timeline& t) {
  py::dict columns;
  columns["rank"] = column<std::uint32_t>(t.idle, [&](const IdleSlice& s) { return t.lanes[s.lane].rank; });
  columns["count"] = column<std::uint32_t>(t.idle, [&](const IdleSlice& s) { return t.lanes[s.lane].count; });
  columns["device"] = column_of_words(
      t.idle, [](const IdleSlice& s) { return s.lane; }, devices(t));
  columns["reason"] = column_of_text(t.idle, [](const IdleSlice& s) { return name_of(s.reason); });
  columns["begin"] = column<double>(t.idle, [](const IdleSlice& s) { return report::si(s.begin); });
  columns["end"] = column<double>(t.idle, [](const IdleSlice& s) { return report::si(s.end); });
  return columns;
}

py::dict link_sample_columns(const Timeline& t) {
  std::vector<std::string> ids;
  for (const report::LinkCounter& link : t.links) ids.push_back(link.id);
  py::dict columns;
  columns["id"] = column_of_words(
      t.samples, [](const CounterSample& s) { return s.link; }, ids);
  columns["time"] = column<double>(t.samples, [](const CounterSample& s) { return report::si(s.time); });
  columns["utilization"] = column<double>(t.samples, [](const CounterSample& s) { return s.utilization; });
  return columns;
}
}  // namespace topsim::python
