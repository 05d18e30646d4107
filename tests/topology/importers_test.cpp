// The table of importers: which of them a text is, and what is said of all.
#include "topology/import/importers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "topology/import/import.hpp"

namespace topsim::topology::importers_test {
// Words of several formats in one text: a host of a fabric may be called GPU0-NV.
TEST(Importers, ATextIsOneOfThemAtMost) {
  const std::string_view words[] = {"<system version=\"1\">", "<topology>", "switchguid=0x1 GPU0-NV",
                                    "caguid=0x1", "GPU0 GPU1\nGPU0 X NV4"};
  for (const std::string_view a : words)
    for (const std::string_view b : words) {
      const std::string text = std::string(a) + '\n' + std::string(b);
      const auto is = [&](const Importer& each) { return each.is(text); };
      EXPECT_EQ(std::count_if(importers().begin(), importers().end(), is), 1) << text;
    }
  EXPECT_EQ(detect_format(words[2]), "ibnet");
  EXPECT_EQ(detect_format("nothing of theirs"), "");
}

TEST(Importers, AreFoundByTheirNames) {
  for (const std::string& name : importer_names()) {
    ASSERT_NE(find_importer(name), nullptr);
    EXPECT_EQ(find_importer(name)->name, name);
  }
  EXPECT_EQ(find_importer(""), nullptr);
  EXPECT_EQ(importer_inputs(), "NCCL's topology XML, hwloc's XML, nvidia-smi topo -m, or ibnetdiscover");
}
}  // namespace topsim::topology::importers_test
