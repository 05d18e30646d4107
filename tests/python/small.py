"""A scenario of two boxes that simulates in milliseconds."""

import copy

_TWO_BOXES = {
    "description": "two HGX H100 boxes",
    "topology": {"node": "hgx-h100", "nodes": 2,
                 "fabric": {"kind": "rail", "link": "ib-ndr", "switch": "qm9700"}},
    "workload": {"model": "megatron-1.7b", "sequence": 2048, "precision": "bf16", "framework": "megatron",
                 "plan": {"tp": 8, "dp": 2, "micro_batch": 1, "global_batch": 8}},
    "run": {"steps": 1, "warmup": 1, "seed": 1},
}


def two_boxes():
    return copy.deepcopy(_TWO_BOXES)
