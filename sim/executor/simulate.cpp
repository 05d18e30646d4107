#include "sim/executor/simulate.hpp"

#include "sim/base/error.hpp"
#include "sim/executor/carrier.hpp"
#include "sim/executor/executor.hpp"
#include "sim/executor/make_network.hpp"
#include "sim/fold/fold.hpp"
#include "sim/network/factory.hpp"

namespace topsim::executor {

namespace {
CollectiveForm form_of(const RunOptions& options, const network::Model& model) {
  return options.collectives == CollectiveForm::pipelined ? usual_form(model) : options.collectives;
}
}  // namespace

CollectiveForm usual_form(const network::Model& model) {
  if (!model.messages_only) return CollectiveForm::pipelined;
  return model.plain_messages ? CollectiveForm::hops : CollectiveForm::steps;
}

std::string_view name_of(CollectiveForm form) {
  switch (form) {
    case CollectiveForm::pipelined:
      return "pipelined";
    case CollectiveForm::steps:
      return "steps";
    case CollectiveForm::hops:
      return "hops";
  }
  return "";
}

fold::System fold_for(const program::Program& program, const topology::Router& router,
                      const collective::NcclModel& nccl, const RunOptions& options) {
  const bool in_steps = form_of(options, network::find_model(options.network)) != CollectiveForm::pipelined;
  fold::FoldOptions folding;
  folding.fold = options.fold && !in_steps;
  folding.all_links = in_steps;
  folding.poll = options.poll;
  folding.slow_ranks = options.slow_ranks;
  for (const CapacityChange& change : options.capacity_changes) {
    folding.marked_links.emplace_back(change.link, static_cast<std::uint32_t>(folding.marked_links.size()));
  }
  for (const PaceChange& change : options.pace_changes) folding.marked_ranks.push_back(change.rank);
  for (const Detour& detour : options.detours) folding.detours.push_back(detour.nccl.get());
  return fold::fold(program, router, nccl, folding);
}

Outcome simulate(const program::Program& program, const topology::Router& router,
                 const collective::NcclModel& nccl, const RunOptions& options, Progress* progress) {
  return simulate(program, fold_for(program, router, nccl, options), router, nccl, options, progress);
}

Outcome simulate(const program::Program& program, const fold::System& system, const topology::Router& router,
                 const collective::NcclModel& nccl, const RunOptions& options, Progress* progress) {
  const network::Model& model = network::find_model(options.network);
  const CollectiveForm form = form_of(options, model);
  const bool in_steps = form != CollectiveForm::pipelined;
  std::vector<double> capacities;
  for (const fold::LinkClass& link : system.links) capacities.push_back(link.capacity.value());
  network::packet::PacketSpec spec = options.packet;
  spec.seed = options.seed;
  const auto [network, packets] = make_network(options.network, capacities, router, spec);
  if (packets != nullptr) {
    for (const Detour& detour : options.detours) packets->add_detour(*detour.router);
    if (progress != nullptr) packets->stop_when([progress] { return progress->stopped(); });
  }
  std::unique_ptr<Contention> contention;
  if (options.congestion && model.calibrated && !in_steps)
    contention = std::make_unique<Contention>(system, router.topology(), options);
  const auto carrier = in_steps
                           ? step_carrier(program, system, nccl, *network, options,
                                          {.hops = form == CollectiveForm::hops,
                                           .plain = model.plain_messages,
                                           .fluid_nvlink = model.fluid_nvlink})
                           : pipelined_carrier(system, *network, !model.shares_links, std::move(contention));
  if (progress != nullptr) {
    progress->ranks = program.ranks;
    progress->rank_classes = static_cast<std::uint32_t>(system.ranks.size());
    progress->unfolded_by = packets != nullptr                                     ? UnfoldedReason::by_packet
                            : !system.folded                                       ? UnfoldedReason::by_choice
                            : router.topology().routing == topology::Routing::ecmp ? UnfoldedReason::by_hash
                                                                                   : UnfoldedReason::by_place;
  }
  Outcome outcome = run(program, system, router.topology(), *network, *carrier, options, progress,
                        model.fluid_nvlink && (form != CollectiveForm::hops));
  outcome.form = form;
  outcome.least_efficiency = carrier->least_efficiency();
  outcome.crowd = carrier->crowd(outcome.end);
  outcome.network_remarks = carrier->remarks();
  if (packets != nullptr) {
    outcome.packets = packets->packets();
    for (std::string& finding : packets->findings()) outcome.network_remarks.push_back(std::move(finding));
  }
  return outcome;
}
}  // namespace topsim::executor
