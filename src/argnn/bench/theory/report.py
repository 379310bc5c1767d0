"""Measure claims, and what is shown and stored of them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from argnn.analysis.figures.style import FORMATS, figure_bytes
from argnn.bench.perf.run import cpu_model
from argnn.bench.theory import CLAIMS
from argnn.bench.theory.finding import Effort, Finding, FoundTable, shown
from argnn.bench.theory.panels import drawn
from argnn.csv_cells import csv_text
from argnn.registry import canonical_name
from argnn.runs.machine import git_state, using_threads, versions

#: Called with the number of finished claims, that of all, and the name of the next.
OnClaim = Callable[[int, int, str], None]
_VERDICTS = ("statement", "the paper says", "in the paper", "measured", "verdict", "rule")


def chosen_claims(names: Sequence[str]) -> list[str]:
    """The claims that the names mean, each once; all without a name."""
    return list(dict.fromkeys(canonical_name(n, CLAIMS, "claim") for n in names)) or list(CLAIMS)


def measure_claims(
    names: Sequence[str], effort: Effort, on_claim: OnClaim | None = None
) -> dict[str, Finding]:
    """Measure claims one after the other, in one thread, so that figures can be repeated."""
    git_state()  # kept from here on: a commit during the measuring is not the code that measured
    found = {}
    with using_threads(1):
        for place, name in enumerate(names):
            if on_claim is not None:
                on_claim(place, len(names), name)
            found[name] = CLAIMS[name](effort)
    return found


def verdict_table(name: str, finding: Finding) -> FoundTable:
    """Every statement of a claim with its verdict."""
    rows = [(s.name, s.says, s.place, s.measured, s.verdict, s.rule) for s in finding.statements]
    records = [dict(zip(_VERDICTS, row, strict=True)) for row in rows]
    return FoundTable(f"verdicts-{name}", records)


def document(found: Mapping[str, Finding], effort: Effort) -> dict[str, Any]:
    """Everything for a machine."""
    return {
        "size": effort.size,
        "seed": effort.seed,
        "versions": versions(),
        **git_state(),
        "claims": {
            name: {
                "statements": [vars(statement) for statement in finding.statements],
                "conditions": finding.conditions,
                "tables": {table.name: table.records for table in finding.tables},
            }
            for name, finding in found.items()
        },
    }


def table_files(found: Mapping[str, Finding], effort: Effort) -> dict[str, bytes]:
    """The tables as CSV files that begin with how they came about, by file name."""
    files = {}
    for name, finding in found.items():
        about = _about(name, effort, finding.conditions)
        for table in (verdict_table(name, finding), *finding.tables):
            files[f"theory-{table.name}.csv"] = _csv(table, about)
    return files


def drawn_figures(found: Mapping[str, Finding]) -> dict[str, bytes]:
    """The figure of each claim in every format, by file name."""
    figures = {name: drawn(finding.panels) for name, finding in found.items()}
    return {
        f"theory-{name}.{kind}": figure_bytes(figure, kind)
        for name, figure in figures.items()
        for kind in FORMATS
    }


def _about(claim: str, effort: Effort, note: str) -> dict[str, str]:
    flags = (" --full" if effort.size == "full" else "") + (
        f" --seed {effort.seed}" if effort.seed else ""
    )
    state, known = git_state(), versions()
    commit = (state["git_commit"] or "unknown")[:7]
    changed = " with changes" if state["git_changed"] else ""
    return {
        "command": f"argnn theory {claim}{flags}",
        "machine": f"one thread of {cpu_model() or 'an unknown processor'}",
        "versions": f"argnn {known['argnn']}, torch {known['torch']}",
        "date": f"{date.today().isoformat()} (commit {commit}{changed})",
        "note": note,
    }


def _csv(table: FoundTable, about: Mapping[str, str]) -> bytes:
    remarks = "".join(f"# {name}: {value}\n" for name, value in about.items())
    cells = csv_text([table.header, *(map(shown, row) for row in table.rows)])
    return (remarks + cells).encode()
