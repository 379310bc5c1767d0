"""The site builds without a warning, and what README, pages and examples show is run.

A block of Python or of commands is run, page by page and in order, in one empty folder. Commands
that train for long say in their first line ``# shortened by the tests: how``, and run alone; those
that install everything say ``# run by CI``. A block of text under ``<!-- output -->`` is what the
block before it printed. The README's blocks of Python are run in ``test_readme.py``.
"""

import ast
import contextlib
import io
import pkgutil
import re
import runpy
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from typer.main import get_command

from argnn.bench.experiments.files import parsed_experiment
from argnn.cli import app, main
from argnn.train import TrainConfig, train_config
from forked import code, run_forked

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SCRIPT = ROOT / "scripts" / "geometry_pictures.py"

FENCE = re.compile(r"^(?:(<!-- output -->)\n+)?```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOADED = re.compile(r'<(?:script|link|img)[^>]* (?:src|href)="(https?:[^"]*)"')
#: Names in words: dotted ones of the package, and files and folders of the repository.
MODULE = re.compile(r"argnn(\.\w+)+")
FILE = re.compile(
    r"(?:src|docs|scripts|tests|examples|argnn|bench|cli|data|functional|nn|runs|settings|store|train)"
    r"/[\w/.-]+"
)
MADE_UP = re.compile(r"my_method|my-method|NAME")
SHORTENED, BY_CI = "# shortened by the tests: one epoch\n", "# run by CI\n"
RUN, SHOWN = ("python", "sh"), ("text", "yaml", "{toctree}")


@dataclass(frozen=True)
class Block:
    """Something between fences."""

    page: str
    line: int
    language: str
    text: str
    is_output: bool

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.text.startswith((SHORTENED, BY_CI))

    def __str__(self) -> str:
        return f"{self.page}, line {self.line}"


def blocks(page: Path) -> list[Block]:
    content = page.read_text(encoding="utf-8")
    return [
        Block(page.name, content.count("\n", 0, found.start()) + 1, language.strip(), text, bool(o))
        for found in FENCE.finditer(content)
        for o, language, text in [found.groups()]
    ]


def commands(block: Block) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in block.text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";")
        lexer.whitespace_split = True
        for word in lexer:
            found[-1:] = [found[-1], []] if word == ";" else [[*found[-1], word]]
        found.append([])
    return [words for words in found if words]


@pytest.fixture
def folder(cache, one_thread, tmp_path, monkeypatch) -> Path:
    """An empty folder to work in, and one thread also for what runs in this process."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    torch.set_num_threads(1)
    return here


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_one_that_is_run(page):
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = blocks(page)
    assert len(fences) == 2 * len(found)
    for block in found:
        assert block.language in RUN + SHOWN, f"{block}: name a language"
        if block.language == "python":
            assert block.is_run
            ast.parse(block.text)
        if block.language == "sh":
            program = "make" if block.text.startswith(BY_CI) else "argnn"
            assert {words[0] for words in commands(block)} == {program}, f"{block}: only {program}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_files_that_a_page_names_exist(page):
    for name in re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8"))):
        if name == "argnn.models":  # a group of entry points
            continue
        if MODULE.fullmatch(name):
            assert resolves(name), name
        elif FILE.fullmatch(name) and not MADE_UP.search(name):
            roots = (ROOT, DOCS, ROOT / "src", ROOT / "src" / "argnn")
            assert any((root / name).exists() for root in roots), name


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def test_a_name_that_moved_is_found():
    assert resolves("argnn.runs.train_one")
    assert not resolves("argnn.bench.settings")
    assert FILE.fullmatch("src/argnn/bench/settings")
    assert FILE.fullmatch("bench/allocator.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_ci_runs_what_pages_say_it_runs(page):
    ran = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    for block in blocks(page):
        if block.text.startswith(BY_CI):
            assert {shlex.join(words) for words in commands(block)} <= set(ran), str(block)


def test_experiments_on_the_pages_can_be_read(folder):
    written = [b for page in PAGES for b in blocks(page) if b.language == "yaml"]
    assert written
    Path("my_graph.npz").touch()
    Path("tuning").mkdir()
    Path("tuning/cora-gcn.yaml").touch()
    for block in written:
        assert parsed_experiment(block.text, str(block), folder).data


@pytest.fixture
def at_most(monkeypatch) -> Callable[[int], None]:
    """Trainings end after a number of epochs, unless they are asked to end before."""

    def limit(epochs: int) -> None:
        def shortened(preset: str, changes: dict[str, object]) -> TrainConfig:
            usual = train_config(preset, changes)
            return replace(usual, epochs=min(usual.epochs, epochs))

        monkeypatch.setattr("argnn.settings.options.train_config", shortened)

    return limit


@pytest.fixture
def one_epoch(brief_trial, at_most, monkeypatch) -> None:
    """Trainings end after one epoch; no graph has more than one seed, links have two splits.

    A comparison is of one split.
    """
    at_most(1)
    for module in ("runs.prepare", "bench.experiments.files"):
        monkeypatch.setattr(f"argnn.{module}.NUM_LINK_SPLITS", 2)
    monkeypatch.setattr("argnn.bench.experiments.files.LEAST_SEEDS", 1)
    monkeypatch.setattr("argnn.bench.comparison.methods.USUAL_SPLITS", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers", "brief_maps")
@pytest.mark.parametrize(
    "block",
    [b for page in PAGES for b in blocks(page) if b.text.startswith(SHORTENED)],
    ids=str,
)
def test_long_blocks_run_with_one_epoch(block, folder, one_epoch, benchmark_root, monkeypatch):
    monkeypatch.setenv("ARGNN_DATA", str(benchmark_root))
    make_tables, *_ = blocks(DOCS / "own_data.md")
    run(make_tables, {})
    Path("shop").rename("my_folder")
    run(block, {})


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers", "brief_maps", "brief_trial", "perf_in_process")
@pytest.mark.parametrize(
    "page", [p for p in PAGES[1:] if any(b.is_run for b in blocks(p))], ids=lambda page: page.name
)
def test_blocks_of_a_page_run_in_order(page, folder, at_most):
    at_most(5)
    names: dict[str, object] = {"__name__": "page"}
    printed = ""
    for block in blocks(page):
        if block.is_run:
            printed = run(block, names)
        elif block.is_output:
            assert visible(printed) == visible(block.text), str(block)


def run(block: Block, names: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, block.page, "exec"), names)
        else:
            for words in commands(block):
                assert words[0] == "argnn", str(block)
                with pytest.raises(SystemExit) as stopped:
                    main(words[1:])
                assert stopped.value.code == 0, f"{block}: {shlex.join(words)}"
    return out.getvalue()


def visible(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.usefixtures("brief_trial")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short_and_run(example, folder, at_most, monkeypatch, capsys):
    at_most(40)
    assert len(example.read_text(encoding="utf-8").splitlines()) < 60
    if example.stem == "serve_new_nodes":
        pytest.importorskip("fastapi", reason="the example needs pip install fastapi")
    monkeypatch.setattr("sys.argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert {
        "classify_csv": "accuracy on 24 test nodes: 0.",
        "compare_methods": "paired t over the same folds",
        "hierarchy_and_cliques": "learned metric: AUROC 0.",
        "serve_new_nodes": "[{'id': 'new', 'b': 0.",
    }[example.stem] in capsys.readouterr().out


def test_all_four_examples_are_there_and_named_on_the_site():
    assert len(EXAMPLES) == 4
    start = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    for example in EXAMPLES:
        assert example.name in start


def test_pictures_are_drawn_by_the_script(folder):
    script = runpy.run_path(str(SCRIPT))
    script["main"](["--out", "pictures"])
    drawn = {path.name for path in Path("pictures").iterdir()}
    page = (DOCS / "geometry.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\(images/([\w.]+)\)", page))
    assert shown == drawn | {"geometry.png"}
    assert all((DOCS / "images" / name).stat().st_size < 200_000 for name in shown)


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="the site needs pip install 'argnn[docs]'")
    build = "import sys; from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
    words = ("-W", "-n", "-q", "-d", tmp_path / "trees", DOCS, tmp_path / "site")
    done, _, errors = run_forked(code, build, *words, cwd=tmp_path)
    assert (done, errors) == (0, "")
    for page in [*(page.stem for page in DOCS.glob("*.md")), "equations", "commands", "api"]:
        assert (tmp_path / "site" / f"{page}.html").stat().st_size > 5_000
    # Nothing is fetched from elsewhere when somebody reads a page.
    for page in (tmp_path / "site").rglob("*.html"):
        assert LOADED.findall(page.read_text()) == [], page.name
    reference = (tmp_path / "site" / "commands.html").read_text()
    sections = re.split(r'<section id="argnn-(\w+)">', reference)
    written = dict(zip(sections[1::2], sections[2::2], strict=True))
    known = get_command(app).commands
    assert written.keys() == known.keys()
    for name, text in written.items():
        for option in known[name].params:
            is_option = option.param_type_name == "option"
            words = option.opts if is_option else [option.metavar or option.name.upper()]
            assert all(f">{word}</span>" in text for word in words), (name, words)
    for name in ("data", "functional", "nn", "train", "analysis", "kernels", "errors"):
        text = (tmp_path / "site" / "api" / f"{name}.html").read_text()
        public = pkgutil.resolve_name(f"argnn.{name}").__all__
        # Tables of names, in capitals, may be left out.
        missing = [n for n in public if not n.isupper() and f'id="argnn.{name}.{n}"' not in text]
        assert missing == [], name
