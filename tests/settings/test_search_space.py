"""Search spaces: their choices, draws without repeats, and what goes together."""

import pytest

from argnn.nn import MODELS
from argnn.runs.prepare import Request, draft
from argnn.settings.options import Overrides
from argnn.settings.search_space import (
    changed_config,
    is_possible,
    search_space,
    shuffled,
    usual_params,
)

SPACE = {"a": [1, 2, 3], "b": ["x", "y"], "c": [None]}


def config_of(model, **request):
    return draft(Request("mixed", model=model, fresh=True, **request)).plan.config


def test_draws_are_all_members_once_and_repeat_with_the_seed():
    drawn = list(shuffled(SPACE, "0"))
    assert len(drawn) == 6 == len({tuple(params.values()) for params in drawn})
    assert all(value in SPACE[name] for params in drawn for name, value in params.items())
    assert drawn == list(shuffled(SPACE, "0"))
    assert any(drawn != list(shuffled(SPACE, str(seed))) for seed in range(1, 9))


def test_nothing_to_choose_from_is_one_empty_draw():
    assert list(shuffled({}, "0")) == [{}]


@pytest.mark.parametrize("model", MODELS)
def test_the_usual_value_is_a_choice_and_fixed_settings_are_not_searched(model):
    config = config_of(model)
    space = search_space(config, Overrides())
    assert (
        usual_params(config, space).items()
        <= {
            **config.options,
            **config.train.to_json(),
        }.items()
    )
    assert all(value in space[name] for name, value in usual_params(config, space).items())
    fixed = Overrides({"hidden_channels": 8}, {"lr": 0.1})
    assert search_space(config, fixed).keys() == space.keys() - {"hidden_channels", "lr"}


def test_changes_reach_model_and_training():
    changed = changed_config(config_of("gcn"), {"dropout": 0.2, "lr": 0.05})
    assert (changed.options["dropout"], changed.train.lr) == (0.2, 0.05)


def test_settings_that_do_not_go_together_are_not_possible():
    config = config_of("argnn")
    assert is_possible(config, {"dropout": 0.2})
    assert not is_possible(config, {"dropout": 2.0})
