"""Pictures of kernels of several launches: each of the launch that it is about."""

from __future__ import annotations

import pytest
from html_page import Page
from launch_kernels import eliminated, normalised, swept

import loopkit as lk


def test_an_access_in_a_loop_of_launches():
    knl = eliminated()
    picture = knl.plot_access("a", "step", n=40, at={"k": 30}, block=(4, 35))
    assert dict(picture.request.when)["k"] == 30
    assert {touch.cell for touch in picture.request.touches} == {(i, 36) for i in range(32, 40)}
    first = knl.plot_access("a", "step", n=40)
    assert dict(first.request.when)["k"] == 0
    assert "k = 30" in str(picture) and "k = 0" in str(first)
    with pytest.raises(lk.InvalidArgumentError, match="no thread of warp 0 makes the access"):
        knl.plot_access("a", "step", n=40, at={"k": 39})
    with pytest.raises(lk.UnknownNameError):
        knl.plot_access("a", "step", n=40, at={"q": 3})


def test_a_picture_lights_up_with_its_statement():
    """The place of a statement is that in the whole kernel, whose nest stands beside."""
    knl = normalised()
    picture = knl.plot_access("y", n=40, m=33)
    ids = [s.id for s in knl.statements]
    assert picture.request.position == ids.index("scale")
    html = picture._repr_mimebundle_()["text/html"]
    assert f'data-lk-s="{ids.index("scale")}"' in html and Page(html).text


def test_requests_of_costs_are_found_again():
    knl = swept()
    costs = knl.costs(n=100, steps=2)
    for access in costs.accesses:
        where = access.array, access.statement
        picture = knl.plot_access(*where, access=access.text, at={"t": 1}, n=100, steps=2)
        assert picture.request.touches and dict(picture.request.when)["t"] == 1
    with pytest.raises(lk.InvalidArgumentError, match="no thread of warp 0 makes the access"):
        knl.plot_access(*where, block=(9, 0, 0), n=100, steps=2)


def test_footprints_of_a_call_and_of_an_iteration():
    knl = eliminated()
    whole = knl.plot_footprint("a", n=12)
    (costs,) = knl.costs(n=12).footprints
    read = [cell for cell in whole.cells if cell.reads]
    assert 4 * len(read) == costs.read
    assert 4 * sum(bool(cell.writes) for cell in whole.cells) == costs.written
    last = knl.plot_footprint("a", n=12, at={"k": 10})
    assert {cell.index for cell in last.cells} == {(11, 11), (11, 10), (10, 11)}
    assert "footprint of the call" in str(whole) and "parts of the call" in str(last)


def test_a_domain_of_launches():
    picture = eliminated().plot_domain("step", n=6)
    assert sum(point.instances for point in picture.points) == sum(k * k for k in range(6))
    assert "those in different blocks by launches alone" in " ".join(str(picture).split())


def test_a_loop_of_a_launch():
    picture = normalised().plot_loop("k", n=40, m=8)
    assert picture.iterations == 8
    with pytest.raises(lk.InvalidArgumentError, match="the call runs the loop over 't'"):
        swept().plot_loop("t", n=100, steps=2)
    with pytest.raises(lk.UnknownNameError):
        swept().plot_loop("q", n=100, steps=2)
