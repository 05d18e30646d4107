#include "sim/report/html/html.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/html/page.hpp"
#include "sim/report/html/step_view.hpp"
#include "sim/report/json.hpp"

namespace topsim::report {
namespace {
using nlohmann::json;

std::int64_t rounded(double value, double scale) {
  return std::llround(value * scale);
}

// Links of the drawing that a reader may choose, whose use over time is therefore kept.
std::vector<std::uint32_t> links_of(const Picture* picture) {
  std::vector<std::uint32_t> links;
  if (picture == nullptr) return links;
  for (const PictureLink& link : picture->links) {
    if (link.series >= 0) links.push_back(static_cast<std::uint32_t>(link.series));
  }
  return links;
}

// Four integers per cell keep the text short: begin (nanoseconds after the begin of the cell before), length
// (nanoseconds), state, share (1/1000).
json track_json(const StepView::Track& track) {
  json cells = json::array();
  std::int64_t last = 0;
  for (const StepView::Cell& cell : track.cells) {
    const std::int64_t begin = cell.begin / 1000;
    cells.push_back(begin - last);
    cells.push_back((cell.begin + cell.length) / 1000 - begin);
    cells.push_back(cell.state);
    cells.push_back(rounded(cell.share, 1000));
    last = begin;
  }
  return cells;
}

json timeline_json(const Timeline& timeline, const StepView& view) {
  json tracks = json::array(), rows = json::array();
  for (const StepView::Track& track : view.tracks) {
    const Lane& lane = timeline.lanes[track.lane];
    tracks.push_back({{"lane", track.lane},
                      {"rank", lane.rank},
                      {"count", lane.count},
                      {"device", lane.device},
                      {"program", lane.program},
                      {"merged", track.merged},
                      {"cells", track_json(track)}});
  }
  for (const StepView::Row& row : view.rows) {
    const LinkCounter& link = timeline.links[row.link];
    json bins = json::array();
    for (double value : row.utilization) bins.push_back(rounded(value, 1000));
    rows.push_back({{"link", row.link},
                    {"id", link.id},
                    {"type", link.type},
                    {"count", link.count},
                    {"bins", std::move(bins)}});
  }
  return {{"seconds", static_cast<double>(view.length) / 1e12},
          {"lanes", timeline.lanes.size()},
          {"links", timeline.links.size()},
          {"shown", view.shown},
          {"states", view.states},
          {"busy_states", view.busy_states},
          {"tracks", std::move(tracks)},
          {"rows", std::move(rows)}};
}

json picture_json(const Picture& picture) {
  json nodes = json::array(), devices = json::array(), links = json::array(), runs = json::array();
  for (const PictureNode& node : picture.nodes) nodes.push_back({{"name", node.name}, {"count", node.count}});
  for (const PictureDevice& device : picture.devices) {
    devices.push_back({{"name", device.name},
                       {"model", device.model},
                       {"kind", topology::name_of(device.kind)},
                       {"tier", device.tier},
                       {"count", device.count},
                       {"node", device.node},
                       {"rank", device.rank}});
  }
  for (const PictureLink& link : picture.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"id", link.id},
                     {"series", link.series},
                     {"kind", link.kind},
                     {"type", link.type},
                     {"count", link.count},
                     {"capacity", link.capacity},
                     {"bytes", link.bytes},
                     {"utilization", link.utilization},
                     {"most", link.most},
                     {"peak", link.peak}});
  }
  for (const auto& [rank, group] : picture.rank_classes) {
    runs.push_back(rank);
    runs.push_back(group);
  }
  return {{"nodes", std::move(nodes)},
          {"devices", std::move(devices)},
          {"links", std::move(links)},
          {"rank_classes", std::move(runs)},
          {"exact", picture.exact}};
}
}  // namespace

std::string to_html(const Result& result, const Timeline* timeline, const Picture* picture,
                    std::string_view what_if) {
  json extra = json::object();
  if (timeline != nullptr) {
    const Duration last_step = result.step_times.empty() ? result.step : result.step_times.back();
    extra["timeline"] = timeline_json(*timeline, make_step_view(*timeline, last_step, links_of(picture)));
  }
  if (picture != nullptr) extra["picture"] = picture_json(*picture);
  if (!what_if.empty()) extra["what_if"] = json::parse(what_if);
  return make_page(
      {"run", result.headline.empty() ? result.name : result.headline, to_json(result), extra.dump()});
}
}  // namespace topsim::report
