"""The trials of a search: Optuna's study in a journal, from which a killed search continues.

The journal is a file of JSON lines that Optuna writes, without pickles. The state of the sampler
is not stored: each proposal is drawn by a new sampler, whose seed comes from the seed of the
search and the number of the trial, and otherwise depends only on the trials before it. One process
at a time may use a journal.

What happens to trials that were running when a search ended:

- After Ctrl-C they are given up, do not count, and the next start runs them again.
- After a killed process they are treated the same, but only once: a trial whose process died
  twice counts as failed. One that needs too much memory must not end every restart.
"""

import json
import logging
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argnn.errors import ArgnnError, ConfigError, RunError
from argnn.files import digest_matches, lock, make_folder, parse_json, with_digest
from argnn.settings.search_space import Params, shuffled

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import FrozenTrial

    from argnn.bench.tuning.search import Search

logger = logging.getLogger(__name__)

#: Trials before the sampler learns from results, and before any trial is pruned.
RANDOM_TRIALS = 10
UNPRUNED_TRIALS = 5

_NAME = "argnn"
_DRAWS = 20
_ATTEMPTS = 2
_FACTS = {"params", "attempt", "again"}
_STATES = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed"}


@dataclass(frozen=True)
class TrialRecord:
    """One trial that counts.

    Attributes:
        number: Its place in the search, counted from 0; trial 0 is the default configuration.
        state: ``"finished"``, ``"pruned"`` or ``"failed"``.
        params: The value of every searched setting.
        value: Mean validation score over all splits; None unless finished.
        scores: Validation score of each split that was trained.
        epochs: The epoch that each of these chose.
        seconds: Time spent in training.
        error: What went wrong, where it failed.
        traceback: Where, if the error is one of the program.
    """

    number: int
    state: str
    params: Params
    value: float | None
    scores: tuple[float, ...]
    epochs: tuple[int, ...]
    seconds: float
    error: str | None = None
    traceback: str | None = None


class SearchStudy:
    """A study with a fixed space, whose proposals depend on its content alone.

    Args:
        study: Optuna's study.
        storage: Where it is kept.
        search: What is searched.
        parallel: Whether several trials run at the same time.
    """

    def __init__(
        self, study: "Study", storage: "JournalStorage", search: "Search", parallel: bool
    ) -> None:
        from optuna.distributions import CategoricalDistribution

        self.study, self.storage, self.search, self.parallel = study, storage, search, parallel
        self.choices = {name: CategoricalDistribution(v) for name, v in search.space.items()}

    @property
    def size(self) -> int:
        """How many different configurations there are at most."""
        return math.prod(len(choices.choices) for choices in self.choices.values())

    def begin_trial(self) -> "Trial | None":
        """Start the next trial: one that was given up before, or a new proposal.

        None if everything was tried.
        """
        if not self._trials("WAITING"):
            params = self._proposal()
            if params is None:
                return None
            self._enqueue(params, attempt=1)
        return self.study.ask(dict(self.choices))

    def end_trial(self, trial: "Trial", state: str, facts: Mapping[str, Any]) -> TrialRecord:
        """Write down what came of a trial; its value is the mean of its scores.

        Args:
            trial: The trial.
            state: ``"COMPLETE"``, ``"PRUNED"`` or ``"FAIL"``.
            facts: What :class:`TrialRecord` tells about it.
        """
        for name, fact in facts.items():
            trial.set_user_attr(name, fact)
        scores = facts["scores"]
        value = sum(scores) / len(scores) if state == "COMPLETE" else None
        self.study.tell(trial, value, state=_state(state))
        return self._records()[trial.number]

    def records(self) -> list[TrialRecord]:
        """The trials that count, in the order in which they were begun."""
        return list(self._records().values())

    def _records(self) -> dict[int, TrialRecord]:
        """By Optuna's number; ours passes over trials that were given up."""
        begun = sorted([*self._counted(), *self._trials("RUNNING")], key=lambda t: t.number)
        return {
            trial.number: _record(number, trial)
            for number, trial in enumerate(begun)
            if trial.state.is_finished()
        }

    def give_up_running(self, *, died: bool) -> None:
        """Take running trials out of the count, to be run again.

        Every step can be repeated: a second interruption in between does no harm.

        Args:
            died: Whether they may have killed their process.
        """
        for trial in self._trials("RUNNING"):
            attempt = trial.user_attrs["attempt"]
            if not died or attempt < _ATTEMPTS:
                self.study.set_user_attr("given_up", sorted({*self._given_up(), trial.number}))
                if all(t.user_attrs["again"] != trial.number for t in self._trials()):
                    self._enqueue(trial.user_attrs["params"], attempt + died, trial.number)
            self.study.tell(trial.number, state=_state("FAIL"))

    def _enqueue(self, params: Params, attempt: int, again: int | None = None) -> None:
        facts = {"params": params, "attempt": attempt, "again": again}
        self.study.enqueue_trial(params, user_attrs=facts)

    def _trials(self, *states: str) -> "list[FrozenTrial]":
        wanted = [_state(name) for name in states] or None
        return self.study.get_trials(deepcopy=False, states=wanted)

    def _given_up(self) -> list[int]:
        return list(self.study.user_attrs.get("given_up", []))

    def _counted(self) -> "list[FrozenTrial]":
        given_up = self._given_up()
        return [trial for trial in self._trials(*_STATES) if trial.number not in given_up]

    def _proposal(self) -> Params | None:
        """The default configuration, then one that was not tried yet."""
        begun = [*self._counted(), *self._trials("RUNNING")]
        if not begun:
            return self.search.default
        tried = [trial.user_attrs["params"] for trial in begun]
        proposals = chain(
            (self._drawn(len(begun), draw) for draw in range(_DRAWS)),
            # Where the sampler proposes only what was tried.
            shuffled(self.search.space, f"{self.search.config.seed} {len(begun)}"),
        )
        possible = self.search.is_possible
        return next((p for p in proposals if p not in tried and possible(p)), None)

    def _drawn(self, number: int, draw: int) -> Params:
        import optuna

        sequence = np.random.SeedSequence([self.search.config.seed, number, draw])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                n_startup_trials=RANDOM_TRIALS,
                multivariate=False,
                constant_liar=self.parallel,
                seed=int(sequence.generate_state(1)[0]),
            )
        # Loaded again: a study object may hold an older state of the trials.
        study = optuna.load_study(study_name=_NAME, storage=self.storage, sampler=sampler)
        trial = optuna.trial.create_trial(state=_state("RUNNING"))
        return {
            name: sampler.sample_independent(study, trial, name, choices)
            for name, choices in self.choices.items()
        }


def _state(name: str) -> Any:
    from optuna.trial import TrialState

    return TrialState[name]


def _record(number: int, trial: "FrozenTrial") -> TrialRecord:
    state, facts = _STATES[trial.state.name], trial.user_attrs
    unknown = f"its process died {_ATTEMPTS} times" if state == "failed" else None
    return TrialRecord(
        number=number,
        state=state,
        params=dict(facts["params"]),
        value=trial.value if state == "finished" else None,
        scores=tuple(facts.get("scores", ())),
        epochs=tuple(facts.get("epochs", ())),
        seconds=facts.get("seconds", 0.0),
        error=facts.get("error", unknown),
        traceback=facts.get("traceback"),
    )


@contextmanager
def open_study(path: Path, search: "Search", *, parallel: bool) -> Iterator[SearchStudy]:
    """Open the journal of a search, or begin one, and keep other processes out meanwhile.

    Args:
        path: The journal; one of any other search is refused.
        search: What is searched.
        parallel: Whether several trials will run at the same time.
    """
    import optuna

    make_folder(path.parent)
    with path.open("ab") as file:
        lock(file, path)
        verbosity = optuna.logging.get_verbosity()
        try:
            optuna.logging.set_verbosity(optuna.logging.ERROR)
            study, storage = _loaded(path, json.loads(json.dumps(search.about())))
            opened = SearchStudy(study, storage, search, parallel)
            opened.give_up_running(died=True)
            yield opened
        finally:
            optuna.logging.set_verbosity(verbosity)


class _NoLock:
    """Replaces Optuna's lock, which outlives a killed process; the file is locked already."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class _JournalWithChecksums:
    """Optuna's file of JSON lines, with a checksum in every line that is added."""

    def __init__(self, file: "JournalFileBackend") -> None:
        self.file, self.read_logs = file, file.read_logs

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self.file.append_logs([with_digest(log) for log in logs])


def _loaded(path: Path, about: dict[str, Any]) -> "tuple[Study, JournalStorage]":
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    whole_lines = _checked_lines(path)
    try:
        file = JournalFileBackend(str(path), lock_obj=_NoLock())  # type: ignore[arg-type]
        storage = JournalStorage(_JournalWithChecksums(file))  # type: ignore[arg-type]
        names = [study.study_name for study in storage.get_all_studies()]
        pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS)
        if names:
            study = optuna.load_study(study_name=_NAME, storage=storage, pruner=pruner)
            _check_about(path, study.user_attrs.get("about", about), about)
            if any(_FACTS - trial.user_attrs.keys() for trial in study.get_trials(deepcopy=False)):
                raise RunError(f"{path}: holds trials that are not of argnn tune")
        os.truncate(path, whole_lines)  # after a part of a line, the next would be unreadable
        if not names:
            study = optuna.create_study(
                study_name=_NAME, storage=storage, pruner=pruner, direction="maximize"
            )
        if "about" not in study.user_attrs:
            study.set_user_attr("about", about)
    except ArgnnError:
        raise
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RunError(f"{path}: damaged, not a journal of this version ({error!s:.80})") from error
    return study, storage


def _checked_lines(path: Path) -> int:
    """Size of the complete lines of a journal, which must be one; a killed write leaves a part."""
    content = path.read_bytes()
    size = content.rfind(b"\n") + 1
    if content and not size:
        raise RunError(f"{path}: not a journal of argnn tune")
    bare = False
    for number, line in enumerate(content[:size].splitlines(), start=1):
        try:
            entry = parse_json(line)
            known = isinstance(entry, dict) and {"op_code", "worker_id"} <= entry.keys()
        except ValueError:
            known = False
        if not known or (number == 1 and entry.get("study_name") != _NAME):
            what = "not a journal of argnn tune" if number == 1 else f"damaged in line {number}"
            raise RunError(f"{path}: {what}")
        if digest_matches(entry) is False:
            raise RunError(f"{path}: damaged, line {number} does not match its checksum")
        bare = bare or "digest" not in entry
    if bare:
        logger.warning(
            "%s: has lines without a checksum, as earlier versions of argnn wrote them; damage "
            "would go unnoticed",
            path,
        )
    return size


def _check_about(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in {**wanted, **found}:
        before, now = found.get(name), wanted.get(name)
        if before != now:
            is_plain = all(isinstance(v, str | int | list) for v in (before, now))
            is_short = is_plain and max(len(str(before)), len(str(now))) < 80
            short = f" ({_word(before)}, not {_word(now)})" if is_short else ""
            raise ConfigError(
                f"{path}: is a search with other {name}{short}; choose another --storage"
            )


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value).lower()
