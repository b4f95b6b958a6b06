"""Arrays on several GPUs: each call runs where its arrays are."""

from __future__ import annotations

import pytest

import loopkit as lk


@pytest.mark.gpu
def test_every_call_runs_where_its_arrays_are():
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    knl = lk.make_kernel("{[i]: 0 <= i < n}", "c[i] = a[i] + b[i]", dtypes={"a, b, c": "float32"})
    knl = knl.split_iname("i", 128, outer_tag="g.0", inner_tag="l.0")
    for device in ("cuda:1", "cuda:0", "cuda:1"):
        a, b = (torch.rand(1000, device=device) for _ in range(2))
        c = knl(a=a, b=b)
        assert c.device == a.device
        assert torch.equal(c, a + b)
        bound = knl.bind(a=a, b=b, c=c.zero_())
        bound()
        assert torch.equal(c, a + b)
        assert torch.cuda.current_device() == 0
    with pytest.raises(lk.LoopkitError, match="b is on cuda:1, but a is on cuda:0"):
        knl(a=torch.rand(4, device="cuda:0"), b=torch.rand(4, device="cuda:1"))
