// Names that people call entries by: "also_called" of the hardware files.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/catalogue/world.hpp"
#include "topology/catalogue/hardware_file.hpp"
#include "topology/catalogue/impl.hpp"

namespace topsim::topology {
namespace {
constexpr const char* kFiles[] = {"accelerators", "cables", "fabrics", "links", "nics", "nodes", "switches"};

std::string help_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.problems().front().help;
  }
  return {};
}
}  // namespace

// A name that is an entry's own would never be looked up.
TEST(AlsoCalled, NamesAreOfEntriesThatExistAndOfNoOther) {
  const std::vector<std::string> directories{TOPSIM_SOURCE_DIR "/configs"};
  for (const char* file : kFiles) {
    const auto document = hardware_document(directories, file);
    const config::Node section = document.root().find(file), names = document.root().find("also_called");
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_TRUE(section.find(names[i].key())) << file << ' ' << names[i].key();
      for (std::size_t k = 0; k < names[i].size(); ++k)
        EXPECT_FALSE(section.find(names[i][k].text())) << file << ' ' << names[i][k].text();
    }
  }
}

TEST(AlsoCalled, ErrorsNameWhatIsMeantWithoutRegardToMarks) {
  const Catalogue& catalogue = shipped();
  const auto link = [&](const char* name) { return help_of([&] { (void)catalogue.link(name); }); };
  EXPECT_TRUE(link("Slingshot-11").starts_with("did you mean \"slingshot-200\"?")) << link("Slingshot-11");
  EXPECT_TRUE(link("IB_NDR400").starts_with("did you mean \"ib-ndr\"?"));
  EXPECT_TRUE(link("cx7").starts_with("did you mean \"ib-ndr\" or \"roce-400g\"?"));
  EXPECT_TRUE(link("eth-50g").starts_with("of other sizes there are: eth-40g, "));  // no 50GbE without RDMA
  EXPECT_TRUE(help_of([&] {
                (void)catalogue.node("Standard_ND96asr_v4");
              }).starts_with("did you mean \"azure-ndv4\"?"));
  EXPECT_TRUE(help_of([&] { (void)catalogue.nic("CX-7"); }).starts_with("did you mean \"connectx-7\"?"));
}
}  // namespace topsim::topology
