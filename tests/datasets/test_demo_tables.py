import numpy as np
import pytest

from coterie.datasets import DEMOS, load_demo, write_demo
from coterie.errors import ParameterError


def test_penguins_are_whole_with_their_missing_values():
    penguins = load_demo("penguins")
    assert len(penguins) == 344
    assert penguins.columns == (
        "species",
        "island",
        "bill_length_mm",
        "bill_depth_mm",
        "flipper_length_mm",
        "body_mass_g",
        "sex",
        "year",
    )
    assert [int(np.isnan(penguins[name]).sum()) for name in penguins.columns[2:6]] == [2, 2, 2, 2]
    assert int((penguins["sex"] == "").sum()) == 11


def test_columns_have_the_type_of_their_fields():
    penguins = load_demo("penguins")
    kinds = {name: penguins[name].dtype.kind for name in ("species", "body_mass_g", "year")}
    assert kinds == {"species": "U", "body_mass_g": "f", "year": "i"}
    species, counts = np.unique(penguins["species"], return_counts=True)
    assert dict(zip(species.tolist(), counts.tolist(), strict=True)) == {
        "Adelie": 152,
        "Chinstrap": 68,
        "Gentoo": 124,
    }


@pytest.mark.parametrize("name", DEMOS)
def test_every_bundled_table_states_its_licence_and_has_columns_of_equal_length(name):
    table = load_demo(name)
    assert "CC0" in table.licence
    assert {len(table[column]) for column in table.columns} == {len(table)}


def test_an_unknown_table_is_an_error_that_lists_the_tables():
    with pytest.raises(ParameterError, match=r'no demo table "iris".*penguins'):
        load_demo("iris")


def test_the_file_written_has_every_row(tmp_path):
    path = write_demo("penguins", tmp_path / "p.csv")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 345
    assert lines[4] == "Adelie,Torgersen,,,,,,2007"


def test_an_existing_file_is_replaced_only_with_overwrite(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        write_demo("penguins", path)
    assert path.read_text() == "mine"
    write_demo("penguins", path, overwrite=True)
    assert path.read_text().startswith("species,")


def test_an_unknown_table_leaves_the_file_of_that_name_alone(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("mine")
    with pytest.raises(ParameterError):
        write_demo("iris", path, overwrite=True)
    assert path.read_text() == "mine"
