#include "sim/report/html/html.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/report/html/page_text.hpp"
#include "sim/report/html/step_view.hpp"
#include "sim/report/json.hpp"

namespace topsim::report {
namespace {
using nlohmann::json;

std::int64_t rounded(double value, double scale) {
  return std::llround(value * scale);
}

// Four integers a cell keep the text short: begin (nanoseconds after that of the cell before), length
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
    rows.push_back({{"id", link.id}, {"type", link.type}, {"count", link.count}, {"bins", std::move(bins)}});
  }
  return {{"seconds", static_cast<double>(view.length) / 1e12},
          {"lanes", timeline.lanes.size()},
          {"links", timeline.links.size()},
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

// Inside a script element no text may look like the element's end.
std::string inside_script(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (char letter : text) {
    if (letter == '<') {
      safe += "\\u003c";
    } else {
      safe += letter;
    }
  }
  return safe;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (char letter : text) {
    if (letter == '&') {
      safe += "&amp;";
    } else if (letter == '<') {
      safe += "&lt;";
    } else {
      safe += letter;
    }
  }
  return safe;
}

void fill(std::string& page, std::string_view mark, std::string_view text) {
  const std::size_t at = page.find(mark);
  if (at == std::string::npos) throw InternalError("the page has no place for " + std::string(mark));
  page.replace(at, mark.size(), text);
}
}  // namespace

bool has_page() {
  return !page_text().empty();
}

void require_page() {
  if (has_page()) return;
  throw ConfigError("this build of topsim has no report page: npm could not fetch the chart library",
                    "in the source folder: sh install.sh, or (cd sim/report/html && npm ci) and build again");
}

std::string to_html(const Result& result, const Timeline* timeline, const Picture* picture) {
  require_page();
  std::string page(page_text());
  json extra = json::object();
  if (timeline != nullptr)
    extra["timeline"] = timeline_json(*timeline, make_step_view(*timeline, result.step));
  if (picture != nullptr) extra["picture"] = picture_json(*picture);
  const std::string title = result.headline.empty() ? result.name : result.headline;
  // From the end to the beginning: what was filled in is never searched.
  fill(page, "@TOPSIM_EXTRA@", inside_script(extra.dump()));
  fill(page, "@TOPSIM_RESULT@", inside_script(to_json(result)));
  fill(page, "@TOPSIM_TITLE@", escaped("topsim: " + title));
  return page;
}
}  // namespace topsim::report
