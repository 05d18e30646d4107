#include "sim/network/packet/episodes.hpp"

#include <algorithm>

namespace topsim::network::packet {
namespace {
constexpr std::size_t kMostRecordedInputs = 4'000'000;  // 100 MB of records
}

Episodes::Episodes(const Graph& graph, const PacketSpec& spec, bool skip)
    : engine_(graph, spec), skip_(skip && spec.loss.probability == 0) {}

std::uint32_t Episodes::kind_of(const Channel& channel, Bytes bytes, Duration extra) {
  const auto [known, fresh] = kinds_by_.try_emplace(std::tuple(&channel, bytes.value(), extra.count()),
                                                    static_cast<std::uint32_t>(kinds_.size()));
  if (fresh) kinds_.push_back({&channel, bytes, extra});
  return known->second;
}

void Episodes::start(const Channel& channel, Bytes bytes, Duration extra, std::uint64_t tag,
                     std::uint64_t order, SimTime now) {
  now_ = std::max(now_, now);
  const std::uint32_t kind = kind_of(channel, bytes, extra);
  close(now);
  if (mode_ == Mode::rest) begin(kind, now);
  inputs_.push_back({since_begin(now), kind});
  messages_.push_back({tag, order});
  const std::size_t last = inputs_.size() - 1;
  if (mode_ == Mode::replayed) {
    const bool expected = followed_->inputs.size() > last && followed_->inputs[last] == inputs_[last];
    if (expected || follow_another(since_begin(now))) return;
    // What came before this message, then this one.
    const Input unexpected = inputs_.back();
    const Message its = messages_.back();
    inputs_.pop_back();
    messages_.pop_back();
    simulate_until(now);
    inputs_.push_back(unexpected);
    messages_.push_back(its);
  }
  send(static_cast<std::uint32_t>(last));
}

void Episodes::begin(std::uint32_t kind, SimTime now) {
  begin_ = now;
  inputs_.clear();
  messages_.clear();
  outputs_.clear();
  next_output_ = 0;
  mode_ = Mode::simulated;
  const bool fresh = engine_.rest(now);  // skipped or not, an episode begins alike
  recording_ = skip_ && fresh && recorded_inputs_ < kMostRecordedInputs;
  if (!recording_) return;
  const auto known = by_first_.find(kind);
  // Following costs a second simulation where it fails: enough of that, and it is left alone.
  if (known != by_first_.end() && left_ < 16 + 2 * skipped_) {
    mode_ = Mode::replayed;
    followed_ = known->second;
    return;
  }
  before_ = engine_.tally();
}

void Episodes::send(std::uint32_t input) {
  const Kind& kind = kinds_[inputs_[input].kind];
  const auto count = static_cast<std::int64_t>(kind.channel->pairs.size());
  const std::int64_t bytes = kind.bytes.value(), parts = std::clamp<std::int64_t>(bytes, 1, count);
  messages_[input].parts = static_cast<std::uint32_t>(parts);
  const SimTime time = begin_ + Duration(inputs_[input].time);
  for (std::int64_t k = 0; k < parts; ++k) {
    const std::int64_t part = bytes * (k + 1) / parts - bytes * k / parts;
    engine_.send(kind.channel->pairs[static_cast<std::size_t>(k)], Bytes(part), time, input);
  }
}

void Episodes::collect() {
  for (const Completion& part : engine_.delivered()) {
    Message& message = messages_[part.tag];
    if (--message.parts > 0) continue;
    const auto input = static_cast<std::uint32_t>(part.tag);
    const SimTime time = part.time + kinds_[inputs_[input].kind].extra;
    outputs_.push_back({since_begin(time), input});
    if (message.told) continue;
    message.told = true;
    done_.push_back({time, message.order, message.tag});
  }
  engine_.delivered().clear();
  engine_.acknowledged().clear();
}

// An episode ends at rest; what starts later begins another one.
void Episodes::close(SimTime now) {
  if (mode_ == Mode::simulated && engine_.next_event() <= now) {
    engine_.run_until(now);
    collect();
  }
  if (mode_ == Mode::simulated && engine_.next_event() == kNever && engine_.at_rest(now)) {
    if (recording_) finish_record();
    mode_ = Mode::rest;
  } else if (mode_ == Mode::replayed && inputs_.size() == followed_->inputs.size() &&
             since_begin(now) >= followed_->end) {
    for (; next_output_ < followed_->outputs.size(); ++next_output_) {
      const Output& output = followed_->outputs[next_output_];
      const Message& message = messages_[output.input];
      done_.push_back({begin_ + Duration(output.time), message.order, message.tag});
    }
    engine_.add(followed_->usage);
    ++skipped_;
    mode_ = Mode::rest;
  }
}

void Episodes::finish_record() {
  const auto [first, last] = by_first_.equal_range(inputs_.front().kind);
  if (std::any_of(first, last, [&](const auto& at) { return at.second->inputs == inputs_; })) return;
  Record record;
  std::sort(outputs_.begin(), outputs_.end(), [](const Output& a, const Output& b) {
    return std::pair(a.time, a.input) < std::pair(b.time, b.input);
  });
  record.inputs = inputs_;
  record.outputs = outputs_;
  record.end = since_begin(engine_.quiet_since());
  record.usage = engine_.tally().since(before_);
  recorded_inputs_ += inputs_.size();
  records_.push_back(std::move(record));
  by_first_.emplace(inputs_.front().kind, &records_.back());
}

bool Episodes::follow_another(std::int64_t now) {
  const auto [first, last] = by_first_.equal_range(inputs_.front().kind);
  for (auto at = first; at != last; ++at) {
    const std::vector<Input>& theirs = at->second->inputs;
    if (theirs.size() < inputs_.size() || !std::equal(inputs_.begin(), inputs_.end(), theirs.begin()))
      continue;
    if (theirs.size() > inputs_.size() && theirs[inputs_.size()].time < now) continue;
    followed_ = at->second;
    // Same messages so far, same completions so far.
    next_output_ = 0;
    while (next_output_ < followed_->outputs.size() &&
           messages_.size() > followed_->outputs[next_output_].input &&
           messages_[followed_->outputs[next_output_].input].told)
      ++next_output_;
    return true;
  }
  return false;
}

void Episodes::simulate_until(SimTime now) {
  mode_ = Mode::simulated;
  ++left_;
  before_ = engine_.tally();
  outputs_.clear();
  for (std::uint32_t input = 0; input < inputs_.size(); ++input) {
    engine_.run_until(begin_ + Duration(inputs_[input].time));
    collect();
    send(input);
  }
  engine_.run_until(now);
  collect();
}

void Episodes::settle() {
  if (mode_ == Mode::replayed) close(now_);
  if (mode_ == Mode::replayed) simulate_until(now_);
}

SimTime Episodes::next_event() {
  if (mode_ == Mode::rest) return kNever;
  if (mode_ == Mode::simulated) return engine_.next_event();
  // Behind the last completion acknowledgements and credits are still under way.
  SimTime next = kNever;
  if (next_output_ == followed_->outputs.size() && inputs_.size() == followed_->inputs.size())
    return begin_ + Duration(std::max(followed_->end, since_begin(now_)));
  if (next_output_ < followed_->outputs.size())
    next = begin_ + Duration(followed_->outputs[next_output_].time);
  // A message that should have come by then and has not leaves the record.
  if (inputs_.size() < followed_->inputs.size())
    next = std::min(next, begin_ + Duration(followed_->inputs[inputs_.size()].time + 1));
  return next;
}

SimTime Episodes::next_event_before(SimTime limit) {
  if (mode_ != Mode::simulated) return next_event();
  const SimTime next = engine_.next_event();
  if (next == kNever || next > limit) return next;
  engine_.run_to_delivery(limit);
  collect();
  if (done_.empty()) return engine_.next_event();
  SimTime first = kNever;
  for (const Done& done : done_) first = std::min(first, done.time);
  return first;
}

void Episodes::advance(SimTime now) {
  now_ = std::max(now_, now);
  if (mode_ == Mode::simulated) {
    engine_.run_until(now);
    collect();
  } else if (mode_ == Mode::replayed) {
    const bool missed = inputs_.size() < followed_->inputs.size() &&
                        followed_->inputs[inputs_.size()].time < since_begin(now);
    if (missed && !follow_another(since_begin(now))) {
      simulate_until(now);
    } else {
      for (; next_output_ < followed_->outputs.size(); ++next_output_) {
        const Output& output = followed_->outputs[next_output_];
        if (output.time > since_begin(now)) break;
        Message& message = messages_[output.input];
        message.told = true;
        done_.push_back({begin_ + Duration(output.time), message.order, message.tag});
      }
      close(now);
    }
  }
}

void Episodes::set_rate(PortIndex port, BytesPerSecond rate, SimTime now) {
  now_ = std::max(now_, now);
  settle();
  if (mode_ == Mode::simulated) {
    engine_.run_until(now);
    collect();
  }
  // Records are those of other rates; the episode under way becomes none.
  records_.clear();
  by_first_.clear();
  recorded_inputs_ = 0;
  recording_ = false;
  engine_.set_rate(port, rate, now);
}
}  // namespace topsim::network::packet
