"""Bars in a notebook, as one output that is replaced while it moves."""

from typing import Any

from rich.progress import Progress, TaskID

_SECONDS = 0.2


class NotebookBars(Progress):
    """The bars of rich without ipywidgets, which rich would need there.

    Every front end can replace an output, and the last one stays in a notebook that is stored.
    No thread draws: an interrupt of the kernel reaches the work and nothing else.
    """

    _output: Any = None
    _drawn = 0.0

    def start(self) -> None:
        """Show the bars."""
        from IPython.display import display

        self._output = display(self, display_id=True)

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Move a bar; it is drawn a few times in a second."""
        super().update(task_id, **changes)
        if self.get_time() - self._drawn > _SECONDS:
            self.refresh()

    def refresh(self) -> None:
        """Draw the bars as they are now."""
        if self._output is not None:
            self._output.update(self)
            self._drawn = self.get_time()

    def stop(self) -> None:
        """Draw them for the last time."""
        self.refresh()
        self._output = None
