from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from towline.config.files import resolve
from towline.config.origins import Layer, Origin, Source, stack

NAMES = st.sampled_from(["user", "partition", "account", "qos"])
WORDS = st.text("abc", min_size=1, max_size=3)
LAYERS = st.lists(st.tuples(st.sampled_from(Source), st.dictionaries(NAMES, WORDS)), max_size=5)


@given(LAYERS)
def test_of_a_setting_that_several_layers_give_the_last_counts_and_is_named(
    given_layers: list[tuple[Source, dict[str, str]]],
) -> None:
    layers = [
        Layer(dict(values), dict.fromkeys(values, Origin(source, str(number))))
        for number, (source, values) in enumerate(given_layers)
    ]
    found = stack(layers)
    assert set(found.values) == set(found.origins) == {name for _, values in given_layers for name in values}
    for name, origin in found.origins.items():
        _, values = given_layers[int(origin.name)]
        assert found.values[name] == values[name]
        assert not any(name in later for _, later in given_layers[int(origin.name) + 1 :])


@given(st.dictionaries(NAMES, WORDS), st.dictionaries(NAMES, WORDS), st.booleans())
def test_every_setting_of_a_profile_says_where_it_is_from(
    in_file: dict[str, str], in_env: dict[str, str], trailing: bool
) -> None:

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        lines = [f'{name} = "{value}"' for name, value in in_file.items()]
        path.write_text("\n".join(["[clusters.a]", 'hosts = "x"', 'root = "/lustre/x"', *lines]) + "\n" * trailing)
        env = {f"TOWLINE_{name.upper()}": value for name, value in in_env.items()}
        found = resolve(env={"TOWLINE_CONFIG_DIR": folder, **env}, directory=Path(folder))
        values = found.profile.model_dump(mode="json")
        for name in ("user", "partition", "account", "qos"):
            wanted = in_env.get(name, in_file.get(name))
            assert values[name] == (wanted if name != "partition" else [wanted] if wanted else [])
            source = Source.ENVIRONMENT if name in in_env else Source.FILE if name in in_file else Source.DEFAULT
            assert found.origins[name].source is source
