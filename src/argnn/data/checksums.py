"""SHA-256 sums of the raw files of the benchmark graphs, from ``raw_files.txt``.

They are the sums of the files that the results of this project were made with. Every file is
compared with its sum whenever it is read: the sources name no versions, disks decay, and some of
the files are pickles, which could run code.
"""

from importlib.resources import files

#: By data set, then by file.
SHA256: dict[str, dict[str, str]] = {}

for _line in files("argnn.data").joinpath("raw_files.txt").read_text("utf-8").splitlines():
    _data_set, _file, _digest = _line.split()
    SHA256.setdefault(_data_set, {})[_file] = _digest
