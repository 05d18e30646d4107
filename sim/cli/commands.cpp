#include "sim/cli/commands.hpp"

#include <array>

namespace topsim::cli {
namespace {
// To add a command: write configure_NAME in NAME.cpp, declare it in commands.hpp, add its line here.
constexpr std::array kCommands = {
    Command{
        "run", "Simulate a scenario: step time, busy links, reasons to wait", configure_run,
        "topsim run configs/8xH100-ib.json\n"
        "topsim run configs/8xH100-ib.json --set workload.plan.pp=4 --set workload.plan.dp=2 --format json\n"
        "topsim run configs/8xH100-ib.json --html report.html\n"
        "topsim run configs/8xH100-ib.json --trace timeline.pftrace --fail-if 'step_time > 20 s'"},
    Command{"topo", "Work with topologies: show, check, draw, bom, import, export, list", configure_topo,
            "topsim topo show configs/8xH100-ib.json\n"
            "topsim topo check configs/8xH100-ib.json\n"
            "topsim topo draw configs/8xH100-ib.json -o cluster.svg\n"
            "topsim topo bom configs/8xH100-ib.json\n"
            "topsim topo export configs/8xH100-ib.json -o cluster.json\n"
            "topsim topo import topo.xml --gpu h100-sxm5 -o box.json"},
    Command{"bench", "Collectives as nccl-tests prints them; incast and other patterns", configure_bench,
            "topsim bench all_reduce configs/8xH100-ib.json -b 8 -e 8G -f 2\n"
            "topsim bench alltoall configs/8xH100-ib.json --format json\n"
            "topsim bench all_reduce configs/8xH100-ib.json --algorithm ring --protocol simple\n"
            "topsim bench p2p configs/8xH100-ib.json\n"
            "topsim bench incast configs/8xH100-roce.json --senders 7 -b 8M\n"
            "topsim bench victim configs/8xH100-roce.json --window '2 ms'"},
    Command{
        "compare", "What differs between scenarios, its cost, its significance", configure_compare,
        "topsim compare configs/8xH100-ib.json configs/8xH100-roce.json\n"
        "topsim compare configs/8xH100-ib.json configs/8xH100-roce.json --with topology.fabric.sharp=true\n"
        "topsim compare configs/8xH100-ib.json configs/8xH100-roce.json --format md > memo.md\n"
        "topsim compare configs/8xH100-ib.json configs/8xH100-roce.json --html compare.html\n"
        "topsim compare old/result.json new/result.json --fail-if 'step_time > 2 %'"},
    Command{"sweep", "The same scenario with other values: grids and lists, resumable", configure_sweep,
            "topsim sweep configs/8xH100-ib.json --vary workload.plan.tp=4,8 --vary workload.plan.pp=1,2\n"
            "topsim sweep configs/8xH100-ib.json --vary topology.nodes=8,16 --out nodes.sqlite --best mfu\n"
            "topsim sweep configs/8xH100-ib.json --vary run.seed=1,2,3 --format csv > sweep.csv"},
    Command{"plan", "The fastest parallel plans that fit the memory", configure_plan,
            "topsim plan configs/8xH100-ib.json --schedules 1f1b,interleaved\n"
            "topsim plan configs/16xA100-hdr.json --gpus 32 --out best.json"},
    Command{"explain", "Critical path, what limits, what a faster part would buy", configure_explain,
            "topsim explain results/result.json\ntopsim explain configs/8xH100-ib.json --faster 20\n"
            "topsim explain configs/8xH100-ib.json --html explained.html"},
    Command{"trace", "What a workload trace holds; convert between formats", configure_trace,
            "topsim trace info configs/traces/ring8.goal\n"
            "topsim trace convert configs/traces/ring8.goal --to native -o ring8-native.json\n"
            "topsim run configs/traces/ring8.json"},
    Command{"list", "What there is: scenarios, hardware, models, fabrics, networks", configure_list,
            "topsim list\ntopsim list scenarios\ntopsim list hardware\ntopsim list hardware "
            "h100-sxm5\ntopsim list models"},
    Command{"validate", "Predictions compared with published measurements", configure_validate,
            "topsim validate korthikanti-2022\n"
            "topsim validate korthikanti-2022 --each\n"
            "topsim validate korthikanti-2022 --format json > validation.json"},
    Command{"calibrate", "Measure congestion losses with packets, for the flow model", configure_calibrate,
            "topsim calibrate --quick --seeds 1\n"
            "topsim calibrate --format json > configs/calibration/congestion.json"},
    Command{"schema", "JSON Schema of scenario files, for editors", configure_schema,
            "topsim schema > configs/schema/scenario.schema.json\ntopsim schema workload"},
    Command{"doctor", "Check this installation", configure_doctor, "topsim doctor"},
    Command{"completion", "Shell completion script", configure_completion,
            "topsim completion bash | install -Dm644 /dev/stdin "
            "~/.local/share/bash-completion/completions/topsim\n"
            "topsim completion fish | install -Dm644 /dev/stdin ~/.config/fish/completions/topsim.fish"},
    Command{"man", "The manual page", configure_man, "topsim man > topsim.1"},
};
}  // namespace

std::span<const Command> commands() {
  return kCommands;
}
}  // namespace topsim::cli
