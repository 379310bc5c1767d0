"""``argnn tune``: search the settings of a model on validation, and write down the best."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from argnn.cli import options
from argnn.cli.app import command, complain, keeping, output_console, print_json, remarks, say
from argnn.cli.options import option
from argnn.errors import RunError
from argnn.runs.progress import ProgressPrinter
from argnn.tables import rich_table
from argnn.wording import option_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import TaskID
    from rich.table import Table

    from argnn.bench.tuning.search import Search
    from argnn.bench.tuning.study import TrialRecord

_SHOWN = 5


@command(
    "Train",
    "argnn tune cora --model gcn --trials 50",
    options.DATA,
    options.MODEL.replace(default="argnn"),
    option("trials", int, "Trials in all; finished, pruned and failed ones count.", default=20),
    options.TASK,
    options.PRESET.replace(default="default"),
    option(
        "split",
        str,
        "Splits to average over, with commas, or all; 0,1,2 if not given, with --folds 0.",
    ),
    option("seed", int, "Seed of the search, of weights and dropout.", default=0),
    option("epochs", int, "Most epochs of a trial; as the method if not given."),
    options.DEVICE,
    option("storage", Path, "Journal of the search; an unfinished one is continued."),
    option("out", Path, "YAML file for the chosen configuration."),
    option("force", bool, "Replace any file there, not only an older result."),
    option(
        "workers",
        int,
        "Trials at the same time; 1, or on Ray as many as fit. With several, the result "
        "depends on which trial ends first.",
    ),
    options.EXECUTOR,
    options.ADDRESS,
    options.AS_JSON,
    options.TRAINING,
    options.GRAPH,
)
def tune(given: options.Given) -> None:
    """Search a model's own settings by validation score; the default is the first trial.

    Every model gets the same number of trials. Test labels are erased before the search. A
    stopped search is continued by the same command.
    """
    from argnn.bench.tuning.search import check_out, default_paths, plan_search, run_search
    from argnn.settings.resolve import AUTO

    console = output_console(given.as_json)
    request = options.requested(vars(given), task=given.task or AUTO, split="all")
    search = plan_search(request, given.trials, splits=given.split)
    usual_journal, usual_out = default_paths(search)
    journal, path = given.storage or usual_journal, given.out or usual_out
    replaces = check_out(path, search, given.force)
    again = option_words(
        {
            "storage": given.storage,
            "out": given.out,
            "data_root": request.data_root,
            "device": None if request.device == "auto" else request.device,
            "executor": None if given.executor == "local" else given.executor,
            "workers": given.workers,
            "address": given.address,
            "force": given.force,
        }
    )
    with keeping(f"continue with: {shlex.join([*search.command, *again])}"):
        with TrialProgress(console, search) as watcher:
            records = run_search(
                search,
                journal,
                watcher,
                executor=given.executor,
                workers=given.workers,
                address=given.address,
            )
        _conclude(search, records, journal, path, replaces, console)


class TrialProgress(ProgressPrinter):
    """A live bar with the best score so far and the time left; elsewhere a line per trial."""

    def __init__(self, console: Console, search: "Search") -> None:
        super().__init__(console)
        self.search = search
        self.records: list[TrialRecord] = []
        self.bar: TaskID | None = None

    def began(self, records: "Sequence[TrialRecord]", total: int) -> None:
        """Say what there is to do, and which trials are over already."""
        say(self.console, _headline(self.search, len(records), total))
        self.records = list(records)
        # Added now, or the time left would be foreseen from trials that cost no time.
        self.bar = self.progress.add_task("trials", total=total, completed=len(records), state="")
        self._move()

    def finished(self, record: "TrialRecord") -> None:
        """Move the bar, or say how a trial went."""
        self.records.append(record)
        self._move()
        if not self.is_live:
            words = f"trial {record.number}: {_result(record, self.search)}, {record.seconds:.1f} s"
            say(self.console, f"{words}; {_settings(record)}")

    def _move(self) -> None:
        from argnn.bench.tuning.search import best_trials

        best = best_trials(self.records)
        words = _result(best[0], self.search) if best else ""
        state = f"best {words} in trial {best[0].number}" if best else ""
        assert self.bar is not None
        self.progress.update(self.bar, completed=len(self.records), state=state)


def _headline(search: "Search", done: int, total: int) -> str:
    config = search.config
    before = f", {done} of them over already" if done else ""
    return (
        f"{config.graph['name']}, {config.model}: {total} trials{before}, by mean validation "
        f"{search.score_name} over splits {','.join(map(str, config.splits))}"
    )


def _result(record: "TrialRecord", search: "Search") -> str:
    if record.state == "failed":
        return f"failed ({record.error})"
    if record.state == "pruned":
        count = len(record.scores)
        return f"pruned after {count} split{'s' if count > 1 else ''}"
    value = _score(record, search)
    return value if search.select == "loss" else f"{value} %"


def _score(record: "TrialRecord", search: "Search") -> str:
    """The mean validation score of a trial; a loss was maximised with a minus."""
    from argnn.runs.tables import score_text

    value = record.value
    if search.select == "loss" and value is not None:
        value = -value
    return score_text(search.select, value)


def _settings(record: "TrialRecord") -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in record.params.items())


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _conclude(
    search: "Search",
    records: "Sequence[TrialRecord]",
    journal: Path,
    path: Path,
    replaces: bool,
    console: Console,
) -> None:
    """Write the result and show it; without one, say why."""
    from argnn.bench.tuning.search import counts, write_result

    unforeseen = [record.traceback for record in records if record.traceback is not None]
    if unforeseen:
        typer.echo(unforeseen[-1], err=True, nl=False)
    try:
        tuned = write_result(path, search, records, force=replaces)
    except RunError as error:
        complain(str(error))
        raise typer.Exit(1) from None
    if console.quiet:
        print_json(
            {
                "storage": str(journal),
                "settings": str(path),
                "tuned": asdict(tuned),
                "trials": [asdict(record) for record in records],
            }
        )
        return
    console.print(_best_table(records, search))
    found = counts(records)
    console.print(", ".join(f"{count} {state}" for state, count in found.items()) + " trials.")
    say(console, f"Chosen settings: {path} (journal: {journal})")
    say(remarks(console), f"Use them: {_use(search, path)}")
    if "folds" in search.config.columns and len(search.config.splits) > 1:
        say(
            console,
            "Warning: folds that validated here are tested in other splits, so that test scores "
            "with these settings are too good; search on one fold (--split 0) and test that.",
        )


def _best_table(records: "Sequence[TrialRecord]", search: "Search") -> "Table":
    from argnn.bench.tuning.search import best_trials

    rows = [
        (
            f"{record.number}{'' if record.number else ' (default)'}",
            _score(record, search),
            _settings(record),
            f"{record.seconds:.1f}",
        )
        for record in best_trials(records)[:_SHOWN]
    ]
    unit = "" if search.select == "loss" else ", %"
    header = ("trial", f"validation{unit}", "settings", "s")
    return rich_table(header, rows, left=("settings",), title="best trials")


def _use(search: "Search", path: Path) -> str:
    """The command that trains with the result."""
    from argnn.data.import_options import column_options
    from argnn.settings.resolve import Request

    config, usual = search.config, Request(search.config.data)
    names, switches = ("model", "preset", "task"), ("directed", "row_normalize")
    options: dict[str, Any] = {"settings": path}
    options |= {n: getattr(config, n) for n in names if getattr(config, n) != getattr(usual, n)}
    options |= {name: getattr(config, name) for name in switches}
    if config.link is not None:
        link_options = ("ratio", "decoder", "spanning_forest")
        options |= {name: getattr(config.link, name) for name in link_options}
        options["split_by"] = config.link.to_json().get("split_by")
    options |= column_options(config.columns, search.graph.schema)
    if "folds" in config.columns:
        options["split"] = ",".join(map(str, config.splits))
    return shlex.join(["argnn", "train", config.data, *option_words(options)])
