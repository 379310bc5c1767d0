"""How much memory this process holds, and has held at most."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def reset_peak() -> bool:
    """Forget earlier peaks; False where the system does not offer that."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


def peak_mib() -> float:
    """Most memory held since :func:`reset_peak`, or since the start where that failed."""
    if _STATUS.exists():
        return _status_mib("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def resident_mib() -> float:
    """Memory held now; Linux only."""
    return _status_mib("VmRSS")


def _status_mib(field: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"{_STATUS} has no {field}")
