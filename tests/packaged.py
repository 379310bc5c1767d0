"""The package's own experiments: reading them takes half a second, so that they are read once."""

from functools import cache
from pathlib import Path

from argnn.bench.ablation import PREFIX, studies
from argnn.bench.experiments import experiment_files
from argnn.bench.experiments.files import packaged_experiments

#: Known before anything is read; ``bench/test_experiments.py`` compares them with what is read.
NAMES = sorted(Path(file.name).stem for file in experiment_files())
STUDY_NAMES = [name.removeprefix(PREFIX) for name in NAMES if name.startswith(PREFIX)]

experiments = cache(packaged_experiments)
read_studies = cache(studies)
