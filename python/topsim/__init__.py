"""topsim: cluster interconnect and topology simulator.

>>> import topsim
>>> ib = topsim.run("configs/8xH100-ib.json")
>>> ib.step_seconds, ib.mfu
>>> topsim.compare("configs/8xH100-ib.json", "configs/8xH100-roce.json")

Units are SI everywhere (seconds, bytes, bytes per second; shares between 0 and 1), as in result.json.
Mistakes in a scenario raise ConfigError, which knows the file, line and column. Everything here may be
called from several threads at once; simulations run without the GIL and stop on Ctrl-C.
"""

from ._core import commit as __commit__
from ._core import version as __version__
from .bench import Bench, bench
from .compare import Comparison, compare
from .errors import ConfigError, Problem
from .explain import Explanation, explain
from .names import names
from .plan import Plans, plan
from .result import Result, load, run
from .scenario import Scenario
from .sweep import Sweep, sweep
from .table import Table
from .topology import Bill, Topology
from .validate import Validation, validate

__all__ = ["Bench", "Bill", "Comparison", "ConfigError", "Explanation", "Plans", "Problem", "Result", "Scenario",
           "Sweep", "Table", "Topology", "Validation", "bench", "compare", "explain", "load", "names", "plan", "run",
           "sweep", "validate"]
