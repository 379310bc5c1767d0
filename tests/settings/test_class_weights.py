"""Class weights as a user writes them."""

import pytest

from argnn.errors import ConfigError
from argnn.settings.options import parsed_class_weight


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("balanced", "balanced"),
        ("fraud=30, ok=1", {"fraud": 30.0, "ok": 1.0}),
        ("a=b=2", {"a=b": 2.0}),
        ("{0: 1, 1: 2.5}", {"0": 1.0, "1": 2.5}),
    ],
)
def test_weights_on_the_command_line(text, weights):
    assert parsed_class_weight(text) == weights


@pytest.mark.parametrize("content", ['{"fraud": 30, "ok": 1}', "fraud: 30\nok: 1\n"])
def test_weights_of_a_file(tmp_path, content):
    path = tmp_path / "weights.yaml"
    path.write_text(content)
    assert parsed_class_weight(str(path)) == {"fraud": 30.0, "ok": 1.0}


@pytest.mark.parametrize(
    "text", ["balance", "fraud=much", "{fraud: much}", "{fraud: [1]}", "{[1", "a=1,a=2", "a=inf"]
)
def test_other_texts_are_refused_in_one_line(text):
    with pytest.raises(ConfigError, match="--class-weight") as caught:
        parsed_class_weight(text)
    assert "\n" not in str(caught.value)
