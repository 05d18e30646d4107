#include "topology/catalogue/figure.hpp"
#include "topology/catalogue/hardware_file.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {
namespace {
using config::Node;

config::CodecPtr<double> money() {
  return figure(config::quantity(config::Dimension::money));
}

struct RawNic : NicEntry {
  std::vector<std::string> notes;
};

const config::Object<RawNic>& table(config::Type<RawNic>) {
  static const auto object =
      config::Object<RawNic>("nic", "A network interface")
          .field("name", &NicEntry::name, "for people", config::required())
          .field("vendor", &NicEntry::vendor, "maker")
          .field("year", &NicEntry::year, "of launch")
          .field("links", &NicEntry::links, "catalogue links a port speaks, the usual first",
                 config::required())
          .field("ports", &NicEntry::ports, "of one card", figure<int>())
          .field("port_rate", &NicEntry::port_rate, "of one port", config::required(),
                 figure<BytesPerSecond>())
          .field("pcie", &NicEntry::pcie, "catalogue link of its slot", figure<std::string>())
          .field("power", &NicEntry::power, "typical", figure<Watts>())
          .field("power_max", &NicEntry::power_max, "highest", figure<Watts>())
          .field("small_message", &NicEntry::small_message, "between two hosts, small message",
                 figure<Duration>())
          .field("message_interval", &NicEntry::message_interval,
                 "between two small messages of one queue pair", figure<Duration>())
          .field("notes", &RawNic::notes, "remarks");
  return object;
}

struct RawSwitch : SwitchEntry {
  Spread<Duration> port_to_port_spread;
  std::string flow_control;
  std::vector<std::string> notes;
};

const config::Object<RawSwitch>& table(config::Type<RawSwitch>) {
  static const auto object =
      config::Object<RawSwitch>("switch", "A switch")
          .field("name", &SwitchEntry::name, "for people", config::required())
          .field("vendor", &SwitchEntry::vendor, "maker")
          .field("asic", &SwitchEntry::asic, "chip inside")
          .field("links", &SwitchEntry::links, "catalogue links of its ports, the usual first",
                 config::required())
          .field("ports", &SwitchEntry::ports, "as sold", config::required(), figure<int>())
          .field("port_rate", &SwitchEntry::port_rate, "of one port", config::required(),
                 figure<BytesPerSecond>())
          .field("split", &SwitchEntry::split, "ways a port can be split", figure<int>())
          .field("port_to_port", &RawSwitch::port_to_port_spread, "latency", spread<Duration>())
          .field("buffer", &SwitchEntry::buffer, "shared packet buffer", figure<Bytes>())
          .field("flow_control", &RawSwitch::flow_control, "how it keeps from dropping", config::required(),
                 config::one_of({"credit", "pfc"}))
          .field("sharp", &SwitchEntry::sharp, "reduces in the network")
          .field("power", &SwitchEntry::power, "typical, without optics", figure<Watts>())
          .field("power_max", &SwitchEntry::power_max, "highest", figure<Watts>())
          .field("rack_units", &SwitchEntry::rack_units, "height")
          .field("notes", &RawSwitch::notes, "remarks");
  return object;
}

struct RawCable : CableEntry {
  std::vector<double> offers{1, 1};
  std::vector<std::string> notes;
};

const config::Object<RawCable>& table(config::Type<RawCable>) {
  static const auto object =
      config::Object<RawCable>("cable", "One way to make a connection")
          .field("name", &CableEntry::name, "for people", config::required())
          .field("kind", &CableEntry::kind, "copper, active or optical", config::required(),
                 config::names<CableKind>({{"dac", CableKind::dac},
                                           {"acc", CableKind::acc},
                                           {"aec", CableKind::aec},
                                           {"aoc", CableKind::aoc},
                                           {"transceiver", CableKind::transceiver}}))
          .field("fabric", &CableEntry::fabric, "sold for this one alone", config::one_of({"infiniband"}))
          .field("rate", &CableEntry::rate, "of the connection", config::required(), figure<BytesPerSecond>())
          .field("reach", &CableEntry::reach, "longest", config::required(), figure<Metres>())
          .field("power", &CableEntry::power, "per end", figure<Watts>())
          .field("fixed", &CableEntry::fixed, "price of the cable, fixed part", money())
          .field("per_metre", &CableEntry::per_metre, "price of the cable, per metre", money())
          .field("per_end", &CableEntry::per_end, "price of a transceiver", money())
          .field("spread", &RawCable::offers, "lowest and highest offer over that price",
                 figure<std::vector<double>>())
          .field("notes", &RawCable::notes, "remarks")
          .check([](const RawCable& cable, const Node& node, config::Reader& reader) {
            if (cable.offers.size() != 2) reader.problem(node, "\"spread\" needs two numbers");
          });
  return object;
}

struct NicsFile : HardwareFile {
  std::map<std::string, RawNic> nics;
};
const config::Object<NicsFile>& table(config::Type<NicsFile>) {
  static const auto object = hardware_file<NicsFile>("nics file", "Network interfaces")
                                 .field("nics", &NicsFile::nics, "by the name that nodes give");
  return object;
}

struct SwitchesFile : HardwareFile {
  std::map<std::string, RawSwitch> switches;
};
const config::Object<SwitchesFile>& table(config::Type<SwitchesFile>) {
  static const auto object =
      hardware_file<SwitchesFile>("switches file", "Switches of fabrics, and chips inside nodes")
          .field("switches", &SwitchesFile::switches, "by the name that scenarios and nodes give");
  return object;
}

struct CablesFile : HardwareFile {
  std::map<std::string, RawCable> cables;
};
const config::Object<CablesFile>& table(config::Type<CablesFile>) {
  static const auto object = hardware_file<CablesFile>("cables file", "Ways to make a connection")
                                 .field("cables", &CablesFile::cables, "by name");
  return object;
}

void check_links(const Node& entry, const std::vector<std::string>& names, const ById<LinkEntry>& links,
                 config::Reader& reader) {
  const Node list = entry.find("links");
  for (std::size_t i = 0; i < names.size() && i < list.size(); ++i) {
    check_known(list[i], "link", names[i], links, reader);
  }
}
}  // namespace

std::string nics_schema(std::string_view name) {
  return config::schema<NicsFile>(name);
}
std::string switches_schema(std::string_view name) {
  return config::schema<SwitchesFile>(name);
}
std::string cables_schema(std::string_view name) {
  return config::schema<CablesFile>(name);
}

void read_nics(const config::Document& file, const ById<LinkEntry>& links, ById<NicEntry>& nics,
               config::Reader& reader) {
  NicsFile whole;
  table(config::Type<NicsFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("nics"), whole.nics, [&](const Node& entry, RawNic& nic) {
    check_links(entry, nic.links, links, reader);
    check_known(entry.find("pcie"), "link", nic.pcie, links, reader);
    nic.id = entry.key();
    nic.source = first_source(entry);
    nics.emplace(nic.id, std::move(nic));
  });
}

void read_switches(const config::Document& file, const ById<LinkEntry>& links, ById<SwitchEntry>& switches,
                   config::Reader& reader) {
  SwitchesFile whole;
  table(config::Type<SwitchesFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("switches"), whole.switches, [&](const Node& entry, RawSwitch& box) {
    check_links(entry, box.links, links, reader);
    box.port_to_port = box.port_to_port_spread.use;
    box.port_to_port_low = box.port_to_port_spread.low;
    box.port_to_port_high = box.port_to_port_spread.high;
    box.credit_flow_control = box.flow_control == "credit";
    box.id = entry.key();
    box.source = first_source(entry);
    switches.emplace(box.id, std::move(box));
  });
}

void read_cables(const config::Document& file, ById<CableEntry>& cables, config::Reader& reader) {
  CablesFile whole;
  table(config::Type<CablesFile>{}).read(file.root(), whole, reader);
  for_each_entry(file.root().find("cables"), whole.cables, [&](const Node& entry, RawCable& cable) {
    if (cable.offers.size() == 2) {
      cable.cheapest = cable.offers[0];
      cable.dearest = cable.offers[1];
    }
    cable.id = entry.key();
    cable.source = first_source(entry);
    cables.emplace(cable.id, std::move(cable));
  });
}

int SwitchEntry::radix(BytesPerSecond rate) const {
  if (rate.value() <= 0 || rate >= port_rate) return ports;
  const double ways = port_rate / rate;
  return ports * std::min(split, static_cast<int>(ways + 0.01));
}
}  // namespace topsim::topology
