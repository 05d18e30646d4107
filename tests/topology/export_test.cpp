#include "topology/export/export.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <tuple>

#include "sim/base/error.hpp"
#include "tests/topology/fixtures.hpp"
#include "topology/draw/draw.hpp"
#include "topology/import/nccl_xml.hpp"
#include "topology/validate/validate.hpp"

namespace topsim::topology::test::export_test {

using namespace topsim::literals;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

Topology load(const std::string& json) {
  const std::string path = testing::TempDir() + "topology_export_test.json";
  std::ofstream(path) << json;
  return build_file(path, catalogue());
}

// An exported file names families of CPUs. What their root complexes do to packets is read from the catalogue
// again.
TEST(Export, WhatIsReadHasTheRootComplexesOfItsCpus) {
  // Packets of 64 instead of 256 bytes, with 26 of header each: (90 / 64) / (282 / 256) = 22.5 / 17.625.
  for (const auto& [cpu, overhead] : {std::pair("intel-spr", 22.5 / 17.625), {"amd", 1.0}, {"arm", 1.0}}) {
    TopologySpec spec = cluster("rtx-pro-6000-8gpu", 1);
    spec.node.cpu = cpu;
    const Topology built = build(spec, catalogue()), read = load(to_json(built));
    EXPECT_DOUBLE_EQ(built.facts_of(device(built, "node0/cpu0")).peer_overhead, overhead) << cpu;
    EXPECT_DOUBLE_EQ(read.facts_of(device(read, "node0/cpu0")).peer_overhead, overhead) << cpu;
  }
}

// As the catalogue has them: SN4700 64 MB, SN5600 160 MB; Rosetta's is not published.
TEST(Export, WhatIsReadHasTheBuffersOfItsSwitches) {
  TopologySpec spec = cluster("hgx-h100", 4, FabricKind::fat_tree);
  for (const auto& [model, buffer] :
       {std::pair("sn4700", 64'000'000), {"sn5600", 160'000'000}, {"rosetta", 0}}) {
    spec.fabric.link.use = model == std::string("rosetta") ? "slingshot-200" : "roce-400g";
    spec.fabric.switch_model.use = model;
    const Topology built = build(spec, catalogue()), read = load(to_json(built));
    EXPECT_EQ(built.facts_of(device(built, "leaf0")).buffer, Bytes(buffer)) << model;
    EXPECT_EQ(read.facts_of(device(read, "leaf0")).buffer, Bytes(buffer)) << model;
  }
}

TEST(Export, ExportingWhatWasReadGivesTheSameBytes) {
  TopologySpec ecmp = cluster("hgx-h100", 4, FabricKind::fat_tree);
  ecmp.fabric.routing = Routing::ecmp;
  TopologySpec roce = cluster("hgx-h100", 2, FabricKind::rail);
  roce.fabric.link.use = "roce-400g";
  const Topology read = load(to_json(build(roce, catalogue())));
  const auto up = read.find_link(device(read, "node0/nic0"), device(read, "leaf0"));
  ASSERT_TRUE(up);
  EXPECT_EQ(read.type_of(*up).transport, "roce");
  for (const TopologySpec& spec :
       {cluster("hgx-h100", 8, FabricKind::rail), ecmp, roce, cluster("dgx-1-v100", 2, FabricKind::fat_tree),
        cluster("gb200-nvl72", 18, FabricKind::rail), cluster("srv-8x4090-dual", 1),
        cluster("trn2", 2, FabricKind::rail)}) {
    const std::string first = to_json(build(spec, catalogue()));
    const std::string second = to_json(load(first));
    EXPECT_TRUE(first == second) << spec.node.use;
  }
}

// Hosts hold 2 x 2 chips, so coordinates do not follow the numbers of accelerators.
TEST(Export, ATorusKeepsWhoIsWhere) {
  TopologySpec spec = cluster("tpu-v4-host", 4, FabricKind::torus);
  spec.fabric.dimensions = {4, 4};
  spec.fabric.link.use = "ici-v4";
  const Topology built = build(spec, catalogue()), read = load(to_json(built));
  EXPECT_EQ(read.torus_dimensions, built.torus_dimensions);
  EXPECT_EQ(read.torus_chips, built.torus_chips);
  EXPECT_NE(built.name(built.torus_chips[2]), "node0/gpu2");
  // Ranks go along the coordinates: rank 2 is at (0, 2), on the next box.
  EXPECT_EQ(read.name(read.accelerators()[2]), "node1/gpu0");
  ASSERT_EQ(read.accelerators().size(), 16U);
  for (std::size_t r = 0; r < 16; ++r)
    EXPECT_EQ(read.name(read.accelerators()[r]), built.name(built.accelerators()[r])) << r;
  EXPECT_EQ(to_json(read), to_json(built));
}

TEST(Export, AReadTopologyRoutesLikeTheOneItWasWrittenFrom) {
  const Topology built = build(cluster("hgx-h100", 4, FabricKind::rail), catalogue());
  const Topology read = load(to_json(built));
  const Router a(built, 3), b(read, 3);
  for (const char* to : {"node0/gpu1", "node3/gpu0", "node2/gpu7"}) {
    const Route x = route(a, "node0/gpu0", to), y = route(b, "node0/gpu0", to);
    EXPECT_EQ(path_of(built, x), path_of(read, y));
    EXPECT_EQ(x.latency, y.latency);
  }
}

TEST(Export, NcclXmlOfABoxReadsBackAsTheSameBox) {
  const Topology t = build(cluster("dgx-a100", 1, FabricKind::rail), catalogue());
  const NcclXmlImport back = read_nccl_xml(to_nccl_xml(t, 0), {});
  const auto count = [](const Topology& x, DeviceKind kind) {
    return std::count_if(x.devices().begin(), x.devices().end(),
                         [&](const Device& d) { return d.kind == kind; });
  };
  // PCIe switches are not compared: NCCL's file lacks the two that have only storage adapters below them.
  for (const DeviceKind kind :
       {DeviceKind::accelerator, DeviceKind::nic, DeviceKind::cpu, DeviceKind::nvswitch})
    EXPECT_EQ(count(back.topology, kind), count(t, kind)) << name_of(kind);
  EXPECT_EQ(back.topology.facts_of(back.topology.accelerators()[0]).compute_capability, 80);
}

TEST(Export, NcclXmlOfAmdsHasItsInfinityFabric) {
  // MI300X: seven links of 64 GB/s to seven neighbours, of which RCCL counts 48. Dies of an MI250X: several
  // links of 50 GB/s to one neighbour, 36 counted (graph/topo.h).
  for (const auto& [node, line, usable] : {std::tuple("mi300x-8", 64e9, 48e9), {"mi250x-4", 50e9, 36e9}}) {
    const Topology t = build(cluster(node, 1), catalogue());
    const Topology back = read_nccl_xml(to_nccl_xml(t, 0), {}).topology;
    const auto fabric = [](const Topology& x) {
      std::map<std::pair<std::string, std::string>, Link> links;
      for (const Link& link : x.links())
        if (link.kind == LinkKind::infinity_fabric && x.device(link.from).kind == DeviceKind::accelerator &&
            x.device(link.to).kind == DeviceKind::accelerator)
          links[{x.name(link.from), x.name(link.to)}] = link;
      return links;
    };
    const auto built = fabric(t), read = fabric(back);
    EXPECT_EQ(built.size(), read.size()) << node;
    EXPECT_EQ(back.nics_of_node(0).size(), t.nics_of_node(0).size()) << node;  // on the dies of an MI250X
    for (const auto& [ends, link] : read) {
      EXPECT_EQ(link.count, built.at(ends).count) << node;
      EXPECT_DOUBLE_EQ(link.line_rate.value(), line * link.count) << node;
      EXPECT_DOUBLE_EQ(link.capacity.value(), usable * link.count) << node;
    }
  }
}

TEST(Export, NicsWithoutACableSayNoSpeed) {
  const Topology t = build(cluster("hgx-h100", 1), catalogue());
  const NcclXmlImport back = read_nccl_xml(to_nccl_xml(t, 0), {});
  EXPECT_EQ(back.topology.nics_of_node(0).size(), 8U);
  EXPECT_THAT(back.findings, Contains(HasSubstr("NICs without <net> in the file: 8")));
}

TEST(Export, NcclXmlOfWhatNcclDoesNotKnowIsASentence) {
  EXPECT_THROW((void)to_nccl_xml(build(cluster("gaudi2-8", 1), catalogue()), 0), ConfigError);
  EXPECT_THROW((void)to_nccl_xml(build(cluster("hgx-h100", 2, FabricKind::rail), catalogue()), 2),
               ConfigError);
}

TEST(Export, DrawingsNameWhatIsThereAndFoldWhatIsAlike) {
  const Topology small = build(cluster("hgx-h100", 2, FabricKind::rail), catalogue());
  EXPECT_THAT(to_svg(small), HasSubstr("node1/gpu7"));
  EXPECT_THAT(to_svg(small), HasSubstr("GB/s</text>"));  // the legend says what a line is
  EXPECT_THAT(to_tree(small), HasSubstr("node0 and 1 more alike"));
  EXPECT_THAT(to_tree(build(cluster("h100x1", 1, FabricKind::rail), catalogue())),
              HasSubstr(": 1 cable down"));
  EXPECT_THAT(to_dot(small), HasSubstr("NVLink"));
  const Topology large = build(cluster("hgx-h100", 2048, FabricKind::rail), catalogue());
  EXPECT_THAT(to_svg(large), HasSubstr("node0 stands for 2048 alike"));
  EXPECT_THAT(to_svg(large), HasSubstr("lines to what is not drawn are left out"));
  EXPECT_LT(to_svg(large).size(), 200000U);
}

TEST(Export, ATreeGoesOnInTheNextLineWhereItIsTooWide) {
  const Topology t = build(cluster("hgx-h100", 2, FabricKind::rail), catalogue());
  const auto words = [](std::string text) {
    for (const char* bar : {"│", "├─", "└─"})
      for (std::size_t at = text.find(bar); at != std::string::npos; at = text.find(bar))
        text.replace(at, std::string(bar).size(), " ");
    std::istringstream in(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  EXPECT_EQ(words(to_tree(t, false, 60)), words(to_tree(t)));  // nothing is lost
  std::istringstream lines(to_tree(t, true, 60));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60U) << line;
}

TEST(Check, AFullRailFabricHasNothingToSay) {
  EXPECT_THAT(check(build(cluster("hgx-h100", 32, FabricKind::rail), catalogue()), catalogue()), IsEmpty());
}

TEST(Check, OversubscriptionIsNamedWithRatioAndPlace) {
  TopologySpec spec = cluster("hgx-h100", 64, FabricKind::rail);
  spec.fabric.nodes_per_leaf = 16;
  spec.fabric.oversubscription = {2};
  EXPECT_THAT(check(build(spec, catalogue()), catalogue()),
              Contains(Field(&Finding::message, HasSubstr("leaf0 and 31 more are 2:1 oversubscribed"))));
}

TEST(Check, ALonelyLeafIsASinglePointOfFailure) {
  EXPECT_THAT(check(build(cluster("hgx-h100", 4, FabricKind::fat_tree), catalogue()), catalogue()),
              Contains(Field(&Finding::message, HasSubstr("single point of failure"))));
}

TEST(Check, ANicFasterThanItsSlotIsFound) {
  // A 400 Gbit/s NIC in a PCIe Gen4 slot that carries about 200.
  TopologySpec spec = cluster("dgx-a100", 2, FabricKind::rail);
  spec.node.nic = "connectx-7";
  spec.fabric.link.use = "ib-ndr";
  EXPECT_THAT(check(build(spec, catalogue()), catalogue()),
              Contains(Field(&Finding::message, HasSubstr("its PCIe slot carries"))));
}

TEST(Check, NodesWithoutAFabricCannotReachEachOther) {
  const auto findings = check(build(cluster("hgx-h100", 2), catalogue()), catalogue());
  EXPECT_THAT(findings, Contains(Field(&Finding::severity, Severity::error)));
  EXPECT_THAT(findings, Contains(Field(&Finding::message, HasSubstr("node0/gpu0 cannot reach node1/gpu0"))));
}

DeviceSpec gpu(const std::string& name) {
  DeviceSpec spec;
  spec.name = name;
  spec.kind = "accelerator";
  spec.node = 0;
  return spec;
}

TopologySpec two_gpus() {
  TopologySpec spec;
  spec.devices = {gpu("a"), gpu("b")};
  LinkSpec link;
  link.from = "a";
  link.to = "b";
  link.link.use = "nvlink4";
  spec.links = {link};
  return spec;
}

std::vector<Problem> problems_of(const TopologySpec& spec) {
  try {
    const Topology t = build(spec, catalogue());
    ADD_FAILURE() << "built with " << t.devices().size() << " devices";
  } catch (const ConfigError& error) {
    return error.problems();
  }
  return {};
}

DeviceSpec device(const std::string& name, const std::string& kind, int node) {
  DeviceSpec spec;
  spec.name = name;
  spec.kind = kind;
  if (kind != "switch") spec.node = node;
  return spec;
}

LinkSpec cable(const std::string& from, const std::string& to, const std::string& use) {
  LinkSpec spec;
  spec.from = from;
  spec.to = to;
  spec.link.use = use;
  return spec;
}

std::vector<std::string> said(const TopologySpec& spec) {
  std::vector<std::string> messages;
  for (const Finding& finding : check(build(spec, catalogue()), catalogue()))
    messages.push_back(finding.message);
  return messages;
}

// A link has one direction, and a cable is two links. A cable with one_way leads to b, but not back.
TEST(Check, WhoIsReachedButDoesNotReachBackIsFound) {
  TopologySpec spec = two_gpus();
  EXPECT_THAT(said(spec), IsEmpty());
  spec.links[0].one_way = true;
  EXPECT_THAT(said(spec), Contains(HasSubstr("b cannot reach a")));
  EXPECT_THAT(said(spec), Contains(HasSubstr("a -> b has no way back (one_way)")));
}

// A speed is refused beyond twice what the catalogue's fastest hardware has. NVLink: 36 links of 50 GB/s an
// accelerator, so 3,600 GB/s; Ethernet: a cable of 1,600 Gbit/s, so 400 GB/s.
TEST(Check, ASpeedThatNoHardwareHasIsFound) {
  TopologySpec spec = two_gpus();
  spec.links[0].link.bandwidth = 3600_GBps;
  EXPECT_THAT(said(spec), IsEmpty());
  spec.links[0].link.bandwidth = 3700_GBps;
  EXPECT_THAT(said(spec), Contains(HasSubstr("a -> b claims 3700 GB/s a cable: no nvlink does that")));
  spec.links[0] = cable("a", "b", "roce-400g");
  spec.links[0].link.bandwidth = 401_GBps;
  EXPECT_THAT(said(spec), Contains(HasSubstr("a -> b claims 401 GB/s a cable: no ethernet does that")));
}

TEST(Check, AnAcceleratorBesideTheSwitchesOfItsNodeIsFound) {
  TopologySpec spec = two_gpus();
  spec.devices.push_back(device("s", "nvswitch", 0));
  spec.links.push_back(cable("a", "s", "nvlink4"));
  EXPECT_THAT(said(spec),
              ElementsAre(HasSubstr("b has no link to the NVSwitches that join the node's others")));
  spec.links.push_back(cable("b", "s", "nvlink4"));
  EXPECT_THAT(said(spec), IsEmpty());
}

// With two nodes there is no majority to compare with: the one with fewer cables is taken to miss one.
TEST(Check, OfTwoNodesTheOneWithFewerCablesMissesARail) {
  TopologySpec spec;
  spec.devices = {device("a", "accelerator", 0), device("n0", "nic", 0), device("n1", "nic", 0),
                  device("b", "accelerator", 1), device("m0", "nic", 1), device("leaf", "switch", 0)};
  spec.links = {cable("a", "n0", "pcie5-x16"), cable("a", "n1", "pcie5-x16"), cable("b", "m0", "pcie5-x16"),
                cable("n0", "leaf", "ib-ndr"), cable("n1", "leaf", "ib-ndr"), cable("m0", "leaf", "ib-ndr")};
  EXPECT_THAT(said(spec), Contains(HasSubstr("node1 has 1 cable into the fabric where the others have 2")));
}

// A cable that runs at 100 of 400 Gbit/s, as when it has fallen back.
TEST(Check, ANicsCableThatRunsSlowerThanItsSiblingsIsFound) {
  TopologySpec spec;
  spec.devices = {device("a", "accelerator", 0), device("n", "nic", 0), device("b", "accelerator", 1),
                  device("m", "nic", 1), device("leaf", "switch", 0)};
  spec.links = {cable("a", "n", "pcie5-x16"), cable("b", "m", "pcie5-x16"), cable("n", "leaf", "ib-ndr"),
                cable("m", "leaf", "ib-ndr")};
  spec.links[3].link.bandwidth = BytesPerSecond(100e9 / 8);
  EXPECT_THAT(said(spec), Contains(HasSubstr("runs at 100 Gbit/s, others of the switch at 400")));
}

TEST(Explicit, DevicesAndLinksOneByOneBuild) {
  const Topology t = build(two_gpus(), catalogue());
  EXPECT_EQ(t.accelerators().size(), 2U);
  EXPECT_EQ(route(Router(t, 1), "a", "b").links.size(), 1U);
}

// As in a fabric of a recipe, routing is what the catalogue says of the cable, else what is usual for its
// kind.
TEST(Explicit, AFabricThatNamesNoRoutingRoutesAsItsCablesDo) {
  const auto routing = [](const std::string& cable, const std::string& kind) {
    TopologySpec spec;
    DeviceSpec leaf;
    leaf.name = "leaf";
    leaf.kind = "switch";
    spec.devices = {gpu("a"), gpu("b"), leaf};
    for (const char* end : {"a", "b"}) {
      LinkSpec link;
      link.from = end;
      link.to = "leaf";
      link.link.use = cable;
      link.kind = kind;
      if (cable.empty()) link.link.bandwidth = BytesPerSecond(50e9);
      spec.links.push_back(link);
    }
    return build(spec, catalogue()).routing;
  };
  EXPECT_EQ(routing("ib-ndr", ""), Routing::adaptive);
  EXPECT_EQ(routing("roce-400g", ""), Routing::ecmp);
  EXPECT_EQ(routing("efa-400g", ""), Routing::spray);
  EXPECT_EQ(routing("slingshot-200", ""), Routing::adaptive);
  EXPECT_EQ(routing("", "infiniband"), Routing::adaptive);
  EXPECT_EQ(routing("", "ethernet"), Routing::ecmp);
}

TEST(Explicit, ADanglingLinkADuplicateNameAndALonelyDeviceAreAllReportedAtOnce) {
  TopologySpec spec = two_gpus();
  spec.links[0].to = "c";
  spec.devices.push_back(gpu("b"));
  const auto problems = problems_of(spec);
  EXPECT_THAT(problems, Contains(Field(&Problem::message, HasSubstr("there is no device \"c\""))));
  EXPECT_THAT(problems, Contains(Field(&Problem::message, HasSubstr("there is already a device \"b\""))));
  EXPECT_THAT(problems, Contains(Field(&Problem::path, "topology.links[0].to")));
}

TEST(Explicit, ALinkWithoutASpeedAsksForOne) {
  TopologySpec spec = two_gpus();
  spec.links[0].link.use.clear();
  EXPECT_THAT(problems_of(spec), Contains(Field(&Problem::message, HasSubstr("has no speed"))));
}

TEST(Explicit, AnUnknownCatalogueNameSaysWhere) {
  TopologySpec spec = cluster("hgx-h1000", 1);
  EXPECT_THAT(problems_of(spec), Contains(Field(&Problem::path, "topology.node")));
}

}  // namespace topsim::topology::test::export_test
