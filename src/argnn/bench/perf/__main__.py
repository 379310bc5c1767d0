"""``python -m argnn.bench.perf --spec JSON``: a measuring process, started by `argnn perf`.

Writes JSON lines to standard output: ``{"progress": [done, total, text]}`` any number of times,
then one ``{"result": ...}``.
"""

import json
import os
import sys
from typing import Any, TextIO

from argnn.bench.perf.config import PerfConfig
from argnn.checked import checked
from argnn.runs.machine import step_memory_kept
from argnn.waiting import let_threads_wait_as_usual


def main(arguments: list[str]) -> None:
    """Do what the specification says."""
    # Whatever a library prints goes to standard error: standard output holds our lines only.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as channel:
        os.dup2(2, 1)
        let_threads_wait_as_usual()
        spec = json.loads(arguments[arguments.index("--spec") + 1])
        _say(channel, {"result": _result(spec, channel)})


def _result(spec: dict[str, Any], channel: TextIO) -> dict[str, Any]:
    config = checked(spec["config"], PerfConfig)
    if spec["memory_of"] is not None:
        from argnn.bench.perf.memory import host_memory
        from argnn.runs.machine import using_threads

        with using_threads(config.threads), step_memory_kept() as step_done:  # as in training
            return host_memory(spec["memory_of"], config, step_done)
    from argnn.bench.perf.worker import measure

    def tell(done: int, total: int, text: str) -> None:
        _say(channel, {"progress": [done, total, text]})

    with step_memory_kept() as step_done:
        return measure(config, tell, step_done)


def _say(channel: TextIO, message: dict[str, Any]) -> None:
    channel.write(json.dumps(message, allow_nan=False) + "\n")
    channel.flush()


if __name__ == "__main__":
    main(sys.argv)
