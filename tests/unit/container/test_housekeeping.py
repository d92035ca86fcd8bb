"""What the keeper of the cache sees, and what a prune takes away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.container.cache import CachedImage
from towline.container.housekeeping import Removal, Shelved, parse_images, parse_removals, to_prune

ANSWER = """@fact images
>uid 1000
>now 1000
>file a 1000 10 400
>note a image=r/a:1
>note a size=10
>note a sha256=aa
>sum a aa
>file b 1001 10 500
>note b size=10
>note b sha256=bb
>sum b cc
>file c 1000 10 600
>broken c
>use a j1 over 700
>use a j2 alive 800
>use b j3 over 550
@end
"""


def test_images_with_their_uses() -> None:
    a, c, b = parse_images(ANSWER)
    assert (a.reference, a.age, a.idle, a.jobs) == ("r/a:1", 600, 200, ("j2",))
    assert (a.whole, a.intact, a.mine) == (True, True, True)
    assert (b.reference, b.age, b.idle, b.jobs, b.whole, b.intact, b.mine) == ("b", 500, 450, (), True, False, False)
    assert (c.whole, c.intact, c.idle) == (False, None, 400)


def test_a_file_without_its_record_is_not_called_cut_off() -> None:
    (image,) = parse_images("@fact images\n>uid 1000\n>now 1000\n>file c 1000 10 600\n>sum c cc\n@end\n")
    assert (image.whole, image.intact) == (True, None)


@pytest.mark.parametrize(
    "answer", [ANSWER.replace("@end\n", ""), ANSWER.replace(">use a j1", ">unsure\n>use a j1"), ""]
)
def test_without_all_of_the_answer_nothing_is_known(answer: str) -> None:
    with pytest.raises(ValueError, match=r"broke off|did not say"):
        parse_images(answer)


def test_removals() -> None:
    answer = "@fact removed\n>used a j1 j2 \n>removed b 77\n>missing c\n@end\n"
    assert parse_removals(answer) == (
        Removal("a", "used", "j1 j2"),
        Removal("b", "removed", "", 77),
        Removal("c", "missing"),
    )


def shelved(number: int, size: int, idle: int, jobs: tuple[str, ...], mine: bool, noted: bool) -> Shelved:
    image = CachedImage(f"i{number}", 1, size, 0, {"size": str(size)} if noted else {})
    return Shelved(image, idle, idle, jobs, mine=mine)


images = st.builds(
    shelved,
    st.integers(0, 10**9),
    st.integers(1, 100),
    st.integers(0, 100),
    st.sampled_from([(), ("job",)]),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(images), st.none() | st.integers(0, 100), st.none() | st.integers(0, 300))
def test_a_prune_never_takes_what_is_used_or_not_its_own(
    shelf: list[Shelved], idle: int | None, keep: int | None
) -> None:
    gone = to_prune(shelf, idle=idle, keep=keep)
    assert not [each for each in gone if each.jobs or not each.mine or not each.image.notes]
    if idle is None and keep is None:
        assert gone == ()
    free = [each for each in shelf if not each.jobs and each.mine and each.image.notes]
    left = [each for each in free if each not in gone]
    if idle is not None:
        assert all(each.idle <= idle for each in left)
    if keep is not None and left:
        assert sum(each.image.size for each in shelf) - sum(each.image.size for each in gone) <= keep
