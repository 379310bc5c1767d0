"""Three real graphs on which no recipe of argnn was developed, from two Debian packages of data.

- ``sections``: Debian packages, joined to those they depend on or recommend; words of the short
  description; the task is the section.
- ``wordnet``: sets of synonyms, joined by WordNet's pointers; words of the gloss; the task is the
  lexicographer's file.
- ``words``: words of WordNet's example sentences, joined to the next word, and to the word after it
  where a short word lies between; the first and last letters, but for every second word only its
  length is shown; the task is the part of speech.

    apt-cache dumpavail > available; apt-get download wordnet-base; dpkg -x wordnet-base_*.deb .
    python scripts/blind_graphs.py draw available usr/share/wordnet GRAPHS
    argnn train GRAPHS/words.npz --split all --model gcn --out RUNS/words-gcn
    python scripts/blind_graphs.py table RUNS docs/results/blind.csv --machine "2 CPU cores"
"""

import argparse
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from argnn.runs.machine import git_state
from argnn.version import __version__

NODES, WIDTH, SPLITS, SEED, MOST_NEIGHBOURS, RAREST = 3000, 256, 3, 18, 10, 30
_CLOSED = {
    "determiner": "a an the this that these those some any no every each all both another",
    "preposition": "of in on at by for with from to into over under about after before between "
    "through during without against among around as up out off down upon toward behind near",
    "pronoun": "i you he she it we they me him her us them his their its my your our who which "
    "what myself himself herself itself themselves everyone someone nothing something whose",
    "conjunction": "and or but nor so yet because although if while when than until unless",
    "auxiliary": "is was are were be been am being has have had do does did will would can could "
    "may might must shall should 's isn't wasn't don't didn't can't won't couldn't",
}
_NUMBER_OF = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}


def main() -> None:
    """Draw the graphs, or write what was measured on them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    draw, store = commands.add_parser("draw"), commands.add_parser("table")
    for name in ("available", "wordnet", "out"):
        draw.add_argument(name, type=Path)
    for name in ("runs", "out"):
        store.add_argument(name, type=Path)
    store.add_argument("--machine", required=True)
    given = parser.parse_args()
    if given.command == "table":
        given.out.write_text("\n".join(table(given.runs, given.machine)) + "\n", encoding="utf-8")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for name, arrays in {**packages(given.available), **wordnet(given.wordnet)}.items():
        np.savez_compressed(given.out / f"{name}.npz", **arrays)


def table(runs: Path, machine: str) -> list[str]:
    """The lines of the file: test accuracy in per cent, mean of the splits, by graph."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    chosen: dict[str, list[str]] = {}
    for path in sorted(runs.glob("*-*/scores.json")):
        graph, _, method = path.parent.name.partition("-")
        summary = json.loads(path.read_text())["summary"]
        found[graph][method] = 100 * summary["test"]["accuracy"]["mean"]
        if method == "argnn":
            config = json.loads((path.parent / "config.json").read_text())["run"]
            splits = config.get("per_split", {"": config}).values()
            chosen[graph] = [own["trial"]["chosen"] for own in splits]
    rivals = sorted({method for scores in found.values() for method in scores} - {"argnn"})
    lines = [",".join(["graph", "splits", "argnn", "ahead", *rivals, "chosen"])]
    for graph, scores in found.items():
        cells = [f"{scores[method]:.2f}" if method in scores else "" for method in rivals]
        ahead = scores["argnn"] - max(scores[method] for method in rivals if method in scores)
        recipes = "; ".join(chosen[graph])
        counts = [str(len(chosen[graph])), f"{scores['argnn']:.2f}", f"{ahead:+.2f}"]
        lines.append(",".join([graph, *counts, *cells, f'"{recipes}"']))
    return [
        "# command: python scripts/blind_graphs.py table RUNS docs/results/blind.csv",
        f"# machine: {machine}",
        f"# versions: argnn {__version__}",
        f"# date: written on {date.today()} (commit {str(git_state()['git_commit'])[:7]})",
        *lines,
    ]


def packages(file: Path) -> dict[str, dict[str, np.ndarray]]:
    """``sections``."""
    known: dict[str, dict[str, str]] = {}
    for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        known.setdefault(fields.get("Package", ""), fields)
    known = {
        name: it for name, it in sorted(known.items()) if {"Section", "Installed-Size"} <= {*it}
    }
    needs = {
        name: [
            word
            for part in re.split("[,|]", f"{it.get('Depends', '')},{it.get('Recommends', '')}")
            if (word := re.sub(r"[\s:(].*", "", part.strip())) in known and word != name
        ]
        for name, it in known.items()
    }
    chosen = snowball(needs)
    x = hashed([words(known[name]["Description"]) for name in chosen])
    section = [known[name]["Section"].rpartition("/")[2] for name in chosen]
    return {"sections": assembled(x, edges_among(chosen, needs), section)}


def wordnet(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """``wordnet`` and ``words``."""
    pointers: dict[str, list[str]] = {}
    lexicographer, glosses = {}, {}
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{kind}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue
            head, _, gloss = line.partition(" | ")
            tag = head.split()[2].replace("s", "a")
            name = f"{head[:8]}{tag}"
            pointers[name] = [a + b for a, b in re.findall(r" (\d{8}) ([nvar]) [0-9a-f]{4}", head)]
            lexicographer[name], glosses[name] = head.split()[1], gloss
    chosen = snowball(pointers)
    x = hashed([words(glosses[name].partition(";")[0]) for name in chosen])
    sentences = [
        text for name in sorted(glosses) for text in re.findall(r'"([^"]*)"', glosses[name])
    ]
    return {
        "wordnet": assembled(
            x, edges_among(chosen, pointers), [lexicographer[name] for name in chosen]
        ),
        "words": text_graph(sentences, parts_of_speech(folder / "cntlist.rev")),
    }


def parts_of_speech(file: Path) -> dict[str, str]:
    """The part of speech in which a word is most often used."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in file.read_text(encoding="latin-1").splitlines():
        sense, _, count = line.split()
        lemma, number = sense.split("%")
        counts[lemma][_NUMBER_OF[number[0]]] += int(count)
    found = {lemma: count.most_common(1)[0][0] for lemma, count in counts.items()}
    return {**found, **{word: kind for kind, text in _CLOSED.items() for word in text.split()}}


def text_graph(sentences: Sequence[str], known: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Sentences of at least six known words, drawn at random."""
    rng = np.random.default_rng(SEED)
    tokens, kinds, edges, hidden = list[str](), list[str](), set[tuple[int, int]](), []
    for index in rng.permutation(len(sentences)):
        sentence = words(sentences[index])
        stems = [next((stem for stem in _stems(word) if stem in known), "") for word in sentence]
        if len(sentence) < 6 or not all(stems):
            continue
        for place, (word, stem) in enumerate(zip(sentence, stems, strict=True)):
            here = len(tokens)
            tokens.append(word)
            kinds.append(known[stem])
            hidden.append(rng.random() < 0.5)
            if place:
                edges.add((here - 1, here))
            if place > 1 and len(sentence[place - 1]) <= 3:
                edges.add((here - 2, here))
        if len(tokens) >= NODES:
            break
    shown = [
        [f"length {len(word)}"] + ([] if hide else [f"^{word[:2]}", f"{word[-2:]}$", word])
        for word, hide in zip(tokens, hidden, strict=True)
    ]
    return assembled(hashed(shown), np.array(sorted(edges)).T, kinds)


def _stems(word: str) -> Iterable[str]:
    yield word
    for ending in ("s", "es", "ed", "d", "ing", "'s", "ly"):
        if word.endswith(ending):
            yield from (word.removesuffix(ending), word.removesuffix(ending) + "e")


def snowball(neighbours: Mapping[str, Sequence[str]]) -> list[str]:
    """Nodes found from one node, at most some neighbours of each, in the order of their names."""
    rng = np.random.default_rng(SEED)
    around: dict[str, set[str]] = defaultdict(set)
    for name, others in neighbours.items():
        for other in others:
            around[name].add(other)
            around[other].add(name)
    queue = [sorted(around)[rng.integers(len(around))]]
    found = set(queue)
    for name in queue:
        for other in rng.permutation(sorted(around[name]))[:MOST_NEIGHBOURS]:
            if str(other) not in found and len(found) < NODES:
                found.add(str(other))
                queue.append(str(other))
    return sorted(found)


def edges_among(chosen: Sequence[str], neighbours: Mapping[str, Sequence[str]]) -> np.ndarray:
    """The edges between chosen nodes, from what is named to who names it."""
    place = {name: index for index, name in enumerate(chosen)}
    pairs = {(place[o], place[n]) for n in chosen for o in neighbours[n] if o in place and o != n}
    return np.array(sorted(pairs)).T


def words(text: str) -> list[str]:
    """The words in small letters."""
    return re.findall(r"[a-z0-9']+", text.lower())


def hashed(texts: Sequence[Sequence[str]]) -> np.ndarray:
    """TF-IDF of words that are hashed to columns, rows of length one."""
    x = np.zeros((len(texts), WIDTH), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text:
            x[row, zlib.crc32(word.encode()) % WIDTH] += 1
    x *= np.log(len(x) / (1 + (x > 0).sum(axis=0)))
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)


def assembled(x: np.ndarray, edges: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays of a graph; nodes of rare classes stay in it without a label."""
    counts = Counter(names)
    kept = sorted(name for name, count in counts.items() if count >= RAREST)
    y = np.array([kept.index(name) if name in kept else -1 for name in names])
    rng = np.random.default_rng(SEED)
    share = np.stack([_ranks(y, rng) for _ in range(SPLITS)], axis=1)
    labelled = (y >= 0)[:, None]
    masks = {
        "train_mask": labelled & (share < 0.48),
        "val_mask": labelled & (share >= 0.48) & (share < 0.8),
        "test_mask": labelled & (share >= 0.8),
    }
    both = np.concatenate([edges, edges[::-1]], axis=1)
    return {"x": x, "edge_index": both, "y": y, "class_names": np.array(kept), **masks}


def _ranks(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random place of each node in its class, from 0 to 1."""
    share = np.zeros(len(y))
    for label in np.unique(y):
        nodes = np.flatnonzero(y == label)
        share[rng.permutation(nodes)] = np.arange(len(nodes)) / len(nodes)
    return share


if __name__ == "__main__":
    main()
