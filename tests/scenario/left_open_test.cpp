#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/config/reader.hpp"
#include "sim/scenario/read/read.hpp"
#include "sim/scenario/run/simulate.hpp"

namespace topsim::scenario::left_open_test {
using nlohmann::json;

struct World {
  config::Library library{{"configs"}};
  topology::Catalogue catalogue = topology::Catalogue::load("configs");
  report::Result run(const std::string& text) const {
    return simulate(parse_scenario(text, "test.json", {}, library), catalogue, {}, nullptr).result;
  }
};

constexpr const char* kRest = R"("run": {"steps": 1}, "topology": {"node": "hgx-h100", "nodes": 2,
    "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700"}})";

TEST(WhatIsLeftOpen, WrittenIntoTheScenarioLeavesNothingOpenAndTheStepAsItWas) {
  const World world;
  for (const char* workload :
       {R"({"framework": "megatron", "plan": {"tp": 4, "pp": 2}, "sequence": 4096})",
        R"({"framework": "fsdp"})", R"({"framework": "deepspeed", "plan": {"zero": 3}})",
        R"({"framework": "megatron", "plan": {"zero": 3}})",
        R"({"framework": "megatron", "plan": {"zero": 2}})",
        // With FSDP a pipeline's parameters stay whole; a single replica shares nothing, whatever the stage.
        R"({"framework": "fsdp", "plan": {"pp": 2}})", R"({"framework": "fsdp", "plan": {"tp": 8, "pp": 2}})",
        R"({"framework": "internevo", "plan": {"tp": 8, "pp": 2}})",
        R"({"framework": "paddle", "plan": {"tp": 2, "pp": 2}})",
        R"({"task": "lora", "packing": true, "plan": {"tp": 8}})",
        // Uneven batches of prompts: four and three at a time, two and one.
        R"({"task": "prefill", "sequence": 2048, "plan": {"tp": 8, "dp": 2, "global_batch": 28}})",
        R"({"task": "prefill", "sequence": 2048, "plan": {"tp": 4, "pp": 4, "global_batch": 6}})",
        R"({"task": "decode", "plan": {"tp": 4, "pp": 4, "global_batch": 5}})",
        R"({"task": "decode", "plan": {"tp": 8}})"}) {
    json all = json::parse(workload);
    all["model"] = "llama3-8b";
    const auto text = [&](const json& section) {
      return R"({"workload": )" + section.dump() + ", " + kRest + "}";
    };
    const report::Result open = world.run(text(all));
    all["model"] = {{"use", "llama3-8b"}};
    all.merge_patch(json::parse(open.left_open));
    const report::Result given = world.run(text(all));
    EXPECT_EQ(given.step, open.step) << workload;
    EXPECT_EQ(given.memory.per_accelerator, open.memory.per_accelerator) << workload;
    EXPECT_EQ(given.left_open, "{}") << workload;
  }
}

// A decode step of a mixture splits no rows, and says so.
TEST(WhatIsLeftOpen, OfAMixtureThatGeneratesMayBeWritten) {
  const World world;
  json all = json::parse(R"({"model": "qwen3-30b-a3b", "task": "decode", "sequence": 4097,
      "plan": {"tp": 4, "ep": 16, "global_batch": 64}})");
  const auto run = [&] { return world.run(R"({"workload": )" + all.dump() + ", " + kRest + "}"); };
  const report::Result open = run();
  EXPECT_EQ(json::parse(open.left_open)["plan"]["sequence_parallel"], false);
  all["model"] = {{"use", "qwen3-30b-a3b"}};
  all.merge_patch(json::parse(open.left_open));
  EXPECT_EQ(run().step, open.step);
}

// A window of stored scores is a mask.
TEST(WhatIsAssumed, SaysWhereAWindowIsAMask) {
  const World world;
  const auto says = [&](const char* framework) {
    const std::string text =
        std::string(R"({"workload": {"model": {"use": "gpt-oss-20b", "layers": 2}, "sequence": 4096, )") +
        R"("framework": ")" + framework + R"("}, )" + kRest + "}";
    const auto findings = world.run(text).findings;
    return std::any_of(findings.begin(), findings.end(), [](const report::Finding& each) {
      return each.message.find("window 128 as a mask") != std::string::npos;
    });
  };
  EXPECT_TRUE(says("deepspeed@2022"));
  EXPECT_FALSE(says("megatron"));
}

// What is kept in 16 bits has the workload's own 16 bits.
TEST(WhatIsLeftOpen, NamesNoOtherFormatOfSixteenBitsThanTheWorkloads) {
  const World world;
  for (const char* framework : {"fsdp", "deepspeed", "ddp"}) {
    const std::string text = std::string(R"({"workload": {"model": "megatron-1.7b", "precision": "fp16", )") +
                             R"("plan": {"micro_batch": 1}, "framework": ")" + framework + R"("}, )" + kRest +
                             "}";
    EXPECT_EQ(world.run(text).left_open.find("bf16"), std::string::npos) << framework;
  }
}

// How tokens reach experts on other ranks is assumed, so it is open, also in inference; where a rank holds
// all experts nothing is sent.
TEST(WhatIsLeftOpen, HasTheTokenDispatcherWhereTokensLeaveTheirRank) {
  const World world;
  const auto plan = [&](const std::string& task, const std::string& more) {
    const std::string text = R"({"workload": {"model": "qwen3-30b-a3b", "sequence": 2048, "task": ")" + task +
                             R"(", "plan": {"micro_batch": 1)" + more + "}}, ";
    return json::parse(world.run(text + kRest + "}").left_open).value("plan", json::object());
  };
  for (const char* task : {"pretrain", "decode"})
    EXPECT_EQ(plan(task, R"(, "ep": 16, "etp": 1)").value("token_dispatcher", ""), "alltoall") << task;
  EXPECT_FALSE(
      plan("pretrain", R"(, "ep": 16, "etp": 1, "token_dispatcher": "deepep")").contains("token_dispatcher"));
  EXPECT_FALSE(plan("decode", R"(, "tp": 4)").contains("token_dispatcher"));
}

// A bare name means its newest set, the first row of that name.
TEST(WhatIsLeftOpen, IsNamedAsAScenarioNamesIt) {
  const World world;
  const std::string text = R"({"workload": {"model": "llama3-8b", "plan": {"tp": 8, "zero": 0}}, )";
  const json open = json::parse(world.run(text + kRest + "}").left_open);
  EXPECT_EQ(open.at("framework").get<std::string>().rfind("megatron@", 0), 0U);
  EXPECT_EQ(open.at("plan").at("dp"), 2);  // 16 accelerators, 8 a replica
  EXPECT_EQ(open.at("plan").at("sequence_parallel"), true);
  EXPECT_EQ(open.at("precision").at("gradients"), "fp32");
  EXPECT_FALSE(open.at("plan").contains("zero"));      // given
  EXPECT_FALSE(open.at("plan").contains("schedule"));  // no pipeline
}

std::string said(const report::Result& result) {
  for (const report::Finding& finding : result.findings)
    if (finding.message.rfind("not stated, so assumed: ", 0) == 0) return finding.message;
  return {};
}

TEST(WhatIsLeftOpen, IsSaidWhereTheStepDependsOnIt) {
  const World world;
  const auto run = [&](const std::string& plan, const std::string& topology) {
    return said(world.run(R"({"workload": {"model": "llama3-8b", "framework": "megatron@2025", "plan": )" +
                          plan + R"(}, "run": {"steps": 1}, "topology": )" + topology + "}"));
  };
  const std::string two = R"({"node": "hgx-h200", "nodes": 2, "fabric": {"kind": "rail", "link": "ib-ndr"}})";
  // 64 sequences on 16 replicas with one each: 4 micro-batches.
  EXPECT_EQ(run(R"({"global_batch": 64})", two),
            "not stated, so assumed: micro_batch 1, so 4 micro-batches a step");
  EXPECT_EQ(run(R"({"micro_batch": 1, "global_batch": 64})", two), "");
  EXPECT_NE(run(R"({"micro_batch": 1, "tp": 8})", two).find("user buffers"), std::string::npos);
  EXPECT_EQ(run(R"({"micro_batch": 1, "tp": 8, "tp_overlap": "none"})", two), "");
  // Where user buffers cannot be had they are not missed: a group over two nodes, no sequence parallelism.
  EXPECT_EQ(run(R"({"micro_batch": 1, "tp": 16})", two), "");
  EXPECT_EQ(run(R"({"micro_batch": 1, "tp": 8, "sequence_parallel": false})", two), "");
  const auto experts = [&](const std::string& dispatcher) {
    return said(world.run(
        R"({"workload": {"model": "qwen3-30b-a3b", "framework": "megatron@2025", "sequence": 2048, "plan":
        {"ep": 16, "etp": 1, "micro_batch": 1)" +
        dispatcher + R"(}}, "run": {"steps": 1}, "topology": )" + two + "}"));
  };
  EXPECT_NE(experts("").find("alltoall"), std::string::npos);
  EXPECT_EQ(experts(R"(, "token_dispatcher": "alltoall")"), "");
  // Adapters and packing cost time too: 16 of NeMo's four matrices, and attention over whole sequences.
  const auto tuned = [&](const std::string& more) {
    return said(world.run(
        R"({"workload": {"model": "llama3-8b", "framework": "megatron@2025", "task": "lora", "packing": )" +
        more + R"(, "plan": {"micro_batch": 1}}, "run": {"steps": 1}, "topology": )" + two + "}"));
  };
  EXPECT_EQ(
      tuned("true"),
      "not stated, so assumed: adapters of rank 16 on qkv, proj, fc1, fc2 (workload.lora); packed sequences "
      "attend as one document, the most that they can cost (workload.packing: how many)");
  EXPECT_EQ(tuned(R"(4, "lora": {"rank": 8})"), "");
  // A name means the set that describes GPUs, on them.
  const auto compiled = [&](const std::string& release) {
    return said(world.run(R"({"workload": {"model": "llama3-8b", "framework": "maxtext)" + release +
                          R"(", "plan": {"micro_batch": 1}}, "run": {"steps": 1}, "topology": )" + two +
                          "}"));
  };
  EXPECT_EQ(compiled(""), "not stated, so assumed: framework maxtext@2024-gpu (maxtext@2025 describes TPUs)");
  EXPECT_EQ(compiled("@2025"), "");
  EXPECT_EQ(compiled("@2024-gpu"), "");
  const std::string racks =
      R"({"node": "gb200-nvl72", "nodes": 32, "fabric": {"kind": "rail", "link": "ib-ndr"}})";
  EXPECT_EQ(run(R"({"micro_batch": 1})", racks),
            "not stated, so assumed: 16 of 18 nodes of each scale-up domain (topology.scale_up_domain)");
}

const std::string kTwoOf =
    R"(, "run": {"steps": 1}, "topology": {"nodes": 2, "fabric": "fat-tree", "node": )";

// A bare name is its newest release; where the accelerator is older by five years or more, logs are not of
// it.
TEST(WhatIsLeftOpen, TheReleaseIsSaidWhereOnlyTheNameIsGiven) {
  const World world;
  const auto run = [&](const std::string& framework, const std::string& node) {
    return world.run(R"({"workload": {"model": "gpt2", "framework": ")" + framework +
                     R"(", "plan": {"micro_batch": 1}})" + kTwoOf + '"' + node + "\"}}");
  };
  EXPECT_EQ(said(run("megatron", "hgx-h100")), "not stated, so assumed: framework megatron@2025");
  EXPECT_EQ(
      said(run("megatron", "dgx-1-v100")),
      "not stated, so assumed: framework megatron@2021, of which most published results on NVIDIA V100 "
      "SXM2 32GB are (megatron@2025 is the newest; this one has no FlashAttention: attention scores are "
      "stored, no distributed optimiser unless zero is 1; with what needs a later one, as cuda_graph, it is "
      "megatron@2024)");
  EXPECT_EQ(
      said(world.run(R"({"workload": {"model": {"use": "llama3-8b", "layers": 2}, "framework": "megatron",
                     "plan": {"micro_batch": 1}})" +
                     kTwoOf + R"("dgx-a100"}})")),
      "not stated, so assumed: framework megatron@2024, as older sets have not all that this job "
      "asks for (megatron@2025 "
      "is the newest)");
  EXPECT_EQ(
      said(run("maxtext", "tpu-v3-host")),  // of 2018, which no set is of
      "not stated, so assumed: framework maxtext@2025, 7 years newer than Google TPU v3: older logs are of "
      "older releases");
  EXPECT_EQ(said(run("megatron@2021", "dgx-1-v100")), "");
  // One release alone needs no word.
  EXPECT_EQ(said(run("internevo", "hgx-h100")), "");
  const report::Result result = run("megatron", "hgx-h100");
  const auto finding =
      std::find_if(result.findings.begin(), result.findings.end(),
                   [](const report::Finding& each) { return each.message.starts_with("not stated"); });
  ASSERT_NE(finding, result.findings.end());
  EXPECT_EQ(finding->assumed, std::vector<std::string>{"workload.framework"});
}

// 8 experts: on every rank, or each split in two as tp splits the dense layers.
TEST(WhatIsLeftOpen, HowExpertsAreSpreadIsSaid) {
  const World world;
  const auto run = [&](const std::string& plan) {
    return said(world.run(
        R"({"workload": {"model": {"use": "mixtral-8x7b", "layers": 4}, "framework": "megatron@2025", "sequence": 512,
        "plan": {"micro_batch": 1, "tp_overlap": "none", "token_dispatcher": "alltoall", )" +
        plan + "}}" + kTwoOf + R"("hgx-h200"}})"));
  };
  EXPECT_EQ(run(R"("tp": 2)"), "not stated, so assumed: ep 1: experts are not spread over ranks");
  EXPECT_EQ(run(R"("tp": 2, "ep": 1)"), "");
  EXPECT_EQ(run(R"("tp": 2, "ep": 8)"),
            "not stated, so assumed: etp 2: experts are split as tp splits the other layers");
  EXPECT_EQ(run(R"("tp": 2, "ep": 8, "etp": 1)"), "");
  // 16 ranks hold no 8 x 4 parts.
  EXPECT_EQ(run(R"("tp": 4, "ep": 8)"),
            "not stated, so assumed: etp 1: ep x tp does not divide a stage's ranks");
}

// Papers that write SiLU mostly have a gate; what says so, or says nothing of SiLU, leaves nothing open.
TEST(WhatIsLeftOpen, WhetherSiluHasGatesIsSaid) {
  const World world;
  const auto run = [&](const std::string& keys) {
    return said(world.run(
        R"({"workload": {"model": {"layers": 4, "hidden": 1024, "heads": 8, "vocab": 32000)" + keys +
        R"(}, "framework": "megatron@2025", "sequence": 512, "plan": {"micro_batch": 1, "tp": 8}}, )" +
        kRest + "}"));
  };
  const std::string open =
      "not stated, so assumed: no gates beside silu: SwiGLU is gated_ffn true (workload.model)";
  EXPECT_EQ(run(R"(, "activation": "silu")"), open);
  EXPECT_EQ(run(R"(, "activation": "silu", "gated_ffn": false)"), "");
  EXPECT_EQ(run(R"(, "activation": "silu", "gated_ffn": true)"), "");
  EXPECT_EQ(run(R"(, "activation": "gelu")"), "");
}
}  // namespace topsim::scenario::left_open_test
