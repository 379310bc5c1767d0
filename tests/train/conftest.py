"""One thread for these small networks: two of them spend their time waiting for each other."""

import pytest
import torch


@pytest.fixture(autouse=True)
def threads():
    """How many threads torch would have taken."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    return usual
