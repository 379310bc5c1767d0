"""The attacks: each yields a case in words and how it ended.

``refused`` and ``same`` are good ends (for input of others, ``same`` means that it was read);
anything else is a failure, in words.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .crafted_arguments import COMMANDS, FILES
from .damage import FOREIGN, WRITTEN, Target, flipped, mutated
from .moments import REACHED, Moment, described, interrupting, recorded, recording
from .process import Ended, Place
from .world import GROWING, QUICK, SLOW, World, contents, essence, words

Attack = Callable[[World, random.Random, int], Iterator[tuple[str, str]]]
NOBODY = 65534
_FORCED = ("predict", "analyze", "figures", "export", "convert", "generate")
_POLITE = (signal.SIGTERM, signal.SIGINT)


def _places(world: World) -> Iterator[Place]:
    """New places, each removed when the next is asked for."""
    number = 0
    while True:
        root = world.root / f"case-{os.getpid()}-{number}"
        yield Place(root)
        shutil.rmtree(root)
        number += 1


def _cut_file(place: Place, whole: dict[str, bytes]) -> str | None:
    """A file that is neither missing nor whole."""
    found = contents(place.here)
    named = [name for name in found if name in whole and not name.endswith(GROWING)]
    return next((name for name in named if found[name] != whole[name]), None)


def _continued(name: str, place: Place, world: World) -> str:
    """Go on after a disturbance, as a user would, and compare the result."""
    whole = world.whole(name).files
    if cut := _cut_file(place, whole):
        return f"{cut} is there, but not whole"
    if any(contents(place.here).get(file) != text for file, text in whole.items()):
        command = words(name, world.inputs.here) + (["--force"] if name in _FORCED else [])
        if name.startswith("train") and (place.here / "run/config.json").exists():
            workers = [word for word in command if word.startswith("--workers")]
            command = ["train", "--resume", "run", *workers]
        ended = place.run(command)
        if ended.kind != "done":
            return f"goes on with {ended.kind}: {ended.err[-300:]}"
    found = contents(place.here)
    other = [file for file, text in whole.items() if found.get(file) != text]
    return f"{other[0]} is another one" if other else "same"


def kills(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Every command is killed at a random time, then goes on and ends as if it was not."""
    for number, place in zip(range(count), _places(world), strict=False):
        name = SLOW[number // 20 % len(SLOW)] if number % 20 == 19 else QUICK[number % len(QUICK)]
        how = rng.choice((signal.SIGKILL, *_POLITE))
        pause = 0.02 + rng.uniform(0, 1.05) * world.whole(name).seconds
        pid = place.begin(words(name, world.inputs.here))
        place.wait_for_begin()
        time.sleep(pause)
        os.kill(pid, how)
        ended = place.end(pid)
        left = [*place.tmp.iterdir(), *place.here.rglob(".writing-*")]
        if how in _POLITE and ended.kind.startswith("traceback"):
            end = ended.kind
        elif "left processes" in ended.err or "hangs" in ended.err:
            end = ended.err[:200]
        elif how in _POLITE and left:
            end = f"left {left[0].name}"
        else:
            end = _continued(name, place, world)
        yield f"{name}, {how.name} after {pause:.2f} s", end


def interrupts(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Every command is interrupted at a moment in its code, then goes on; nothing may remain."""
    known: dict[str, list[Moment]] = {}
    for number, place in zip(range(count), _places(world), strict=False):
        name = QUICK[-1 - number % len(QUICK)]
        if name not in known:
            world.whole(name)  # imports what is not imported yet
            path = place.root / "moments.json"
            place.end(place.begin(words(name, world.inputs.here), prepare=recording(path)))
            known[name] = recorded(path)
            shutil.rmtree(place.root)
            place = Place(place.root)
        moment, how = rng.choice(known[name]), rng.choice(_POLITE)
        begin = place.begin(words(name, world.inputs.here), prepare=interrupting(moment, how))
        yield f"{name}, {how.name} {described(moment)}", _stopped(name, place, world, begin, how)


def _stopped(name: str, place: Place, world: World, pid: int, how: signal.Signals) -> str:
    """Whether an interrupted command ends as it should, says what is true, and goes on."""
    ended = place.end(pid)
    left = [*place.tmp.iterdir(), *place.here.rglob(".*"), *place.cache.rglob(".*")]
    if ended.code == 0 and REACHED not in ended.err:
        return "same"  # moments of waiting are not in every run
    first, *more = ended.err.replace(REACHED, "").splitlines() or [""]
    if (ended.code, first) == (-how, ""):  # before the command had begun, or after its end
        return _continued(name, place, world)
    if ended.code != 128 + how:
        return f"not interrupted: {ended.kind}"
    if more or not first.startswith("argnn: error: interrupted"):
        return f"says {ended.err[:500]}"
    if left:
        return f"left {left[0].relative_to(place.root)}"
    if "nothing was written" in first and (found := contents(place.here)):
        return f"says that nothing was written, not {min(found)}"
    return _continued(name, place, world)


def _targets(world: World, known: dict[str, Target]) -> list[tuple[str, Target]]:
    return [pair for pair in known.items() if world.has_benchmark or pair[0] != "benchmark"]


def _damaged(
    world: World, rng: random.Random, place: Place, target: Target, change: Callable
) -> tuple[str, str, Ended]:
    """Damage a file of a target, and let a command read it."""
    target.copied(world, place)
    found = [path for pattern in target.files for path in place.root.glob(pattern)]
    path = rng.choice(sorted(path for path in found if path.is_file() and path.stat().st_size))
    path.write_bytes(change(path.read_bytes(), rng))
    reader = rng.choice(target.readers).format(i=world.inputs.here, o="")
    return str(path.relative_to(place.here.parent)), reader, place.run(reader.split(), limited=True)


def flips(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """A bit of a file that argnn wrote is another: refused, or the same result."""
    known: dict[tuple[str, str], tuple[bytes, dict[str, bytes]]] = {}
    targets = _targets(world, WRITTEN)
    for number, place in zip(range(count), _places(world), strict=False):
        name, target = targets[number % len(targets)]
        file, reader, ended = _damaged(world, rng, place, target, flipped)
        end = ended.kind
        if end == "done":
            if (name, reader) not in known:
                usual = Place(place.root.with_name(f"{place.root.name}-usual"))
                target.copied(world, usual)
                out = usual.run(reader.split()).out
                known[name, reader] = essence(out.encode()), contents(usual.here)
                shutil.rmtree(usual.root)
            out, files = known[name, reader]
            now, damaged = contents(place.here), file.removeprefix("here/")
            other = [n for n, text in files.items() if n != damaged and now.get(n) != text]
            end = "same" if not other else f"{other[0]} is another one"
            end = end if essence(ended.out.encode()) == out else "prints something else"
        yield f"{name}: {file}, read by {reader}", end


def mutations(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Files of every format with random damage: read or refused, in little memory and time."""
    targets = _targets(world, FOREIGN | WRITTEN)
    for number, place in zip(range(count), _places(world), strict=False):
        name, target = targets[number % len(targets)]
        file, reader, ended = _damaged(world, rng, place, target, mutated)
        yield f"{name}: {file}, read by {reader}", ended.kind.replace("done", "same")


def crafted(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Files and words made to do harm: refused or read, in little memory and time."""
    cases = [*FILES.items(), *COMMANDS.items()]
    rng.shuffle(cases)
    for (name, case), place in zip(cases[:count], _places(world), strict=False):
        shutil.copytree(world.inputs.here, place.here, dirs_exist_ok=True)
        line = case(place.here) if callable(case) else case
        ended = place.run([*line], limited=True)
        left = [path.name for path in place.here.iterdir() if path.name == "hacked"]
        yield name, "ran code of the file" if left else ended.kind.replace("done", "same")


def permissions(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Another user, who may not read, enter or write what a command needs."""
    if os.geteuid():
        return
    doors = ("input", "run/split-0", "run/config.json", "in", "here", "out", "cache", "tmp")
    cases = [(name, door) for name in QUICK for door in doors]
    rng.shuffle(cases)
    for (name, door), place in zip(cases[:count], _places(world), strict=False):
        shutil.copytree(world.inputs.here, place.here / "in")
        (place.here / "out").mkdir()
        for path in (place.root, *place.root.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        command = words(name, "in", "out/")
        for closed in _behind(door, place, command):
            os.chown(closed, 0, 0)
            closed.chmod(rng.choice((0o000, 0o555 if closed.is_dir() else 0o200)))
        before = contents(place.here)
        ended = place.run(command, user=NOBODY)
        changed = ended.kind == "refused" and contents(place.here) != before
        end = "refused, but left files" if changed else ended.kind
        yield f"{name}, {door} closed", end.replace("done", "same")


def _behind(door: str, place: Place, command: list[str]) -> list[Path]:
    if door in ("cache", "tmp", "here"):
        return [place.root / door]
    if door in ("in", "out"):
        return [place.here / door]
    if door == "input":
        return [place.here / word for word in command if word.startswith("in/")]
    return [place.here / "in" / door]


def full_disks(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """The disk is full at a random byte; with more space, the command ends as if it never was."""
    for number, place in zip(range(count), _places(world), strict=False):
        name, folder = QUICK[number % len(QUICK)], rng.choice(("here", "here", "cache", "tmp"))
        files = (world.whole(name).place.root / folder).rglob("*")
        kilobytes = 4 + rng.randrange(20 + sum(4 + path.stat().st_size // 1024 for path in files))
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", place.root / folder]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return
        try:
            ended = place.run(words(name, world.inputs.here))
            end = ended.kind
            if end in ("done", "refused"):
                more = ["mount", "-o", "remount,size=1g", place.root / folder]
                subprocess.run(more, check=True)
                goes_on = _continued(name, place, world)
                end = end if goes_on == "same" else goes_on
        finally:
            subprocess.run(["umount", "-l", place.root / folder], check=True)
        yield f"{name}, {kilobytes} kB in {folder}", end.replace("done", "same")


def pairs(world: World, rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """The same command twice at once: one is refused, or both find the same."""
    names = ["resume", *QUICK]
    for number, place in zip(range(count), _places(world), strict=False):
        name = names[number % len(names)]
        whole = world.whole("train" if name == "resume" else name).files
        command = ["train", "--resume", "run"]
        if name == "resume":
            shutil.copytree(world.half.here, place.here, dirs_exist_ok=True)
        else:
            command = words(name, world.inputs.here)
        first = place.begin(command)
        time.sleep(rng.choice((0, rng.uniform(0, 0.5))))
        second = place.begin(command, name="second")
        kinds = [place.end(first).kind, place.end(second, name="second").kind]
        wrong = [kind for kind in kinds if kind not in ("done", "refused")]
        found = contents(place.here)
        other = [file for file, text in whole.items() if found.get(file) != text]
        end = "refused" if "refused" in kinds else "same"
        end = f"{other[0]} is another one or missing" if other else end
        if kinds == ["refused", "refused"]:
            end = "both were refused"
        yield f"{name}, twice", wrong[0] if wrong else end


#: Attacks, and how many cases of each are tried.
ATTACKS: dict[str, tuple[Attack, int]] = {
    "kills": (kills, 160),
    "interrupts": (interrupts, 320),
    "flips": (flips, 700),
    "mutations": (mutations, 1400),
    "crafted": (crafted, 1000),
    "permissions": (permissions, 1000),
    "full disks": (full_disks, 65),
    "two at once": (pairs, 42),
}
