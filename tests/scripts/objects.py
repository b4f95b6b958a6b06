"""Instructions and conditions as objects, and what a kernel says of itself."""

import numpy as np
from pymbolic import parse, var

import loopkit.loopy as lp
from loopkit.loopy.kernel.data import GroupInameTag
from loopkit.loopy.match import And, Id, Tagged, Writes
from loopkit.loopy.symbolic import Reduction
from loopkit.loopy.types import to_loopy_type

knl = lp.make_kernel(
    "{ [i, k]: 0 <= i, k < n }",
    [
        lp.Assignment(
            "total",
            Reduction("sum", ("k",), var("a")[var("i"), var("k")]),
            id="add",
            temp_var_type=lp.Optional(np.float64),
            within_inames=frozenset(["i"]),
        ),
        lp.Assignment(var("y")[var("i")], parse("2*total"), depends_on="add", tags=["out"]),
        lp.BarrierInstruction(id="bar", depends_on=frozenset(["insn*"])),
        lp.Assignment("z[k]", "y[n - 1 - k]", id="last", depends_on=frozenset(["bar"])),
    ],
    [lp.GlobalArg("a", to_loopy_type(np.float64)), lp.GlobalArg("y", is_input=False), "..."],
    assumptions="n >= 1",
    options=lp.Options(return_dict=True),
)
top = knl.default_entrypoint
assert top.insn_inames("last") == {"k"} and top.all_params() == {"n"}
assert top.writer_map()["y"] <= set(top.id_to_insn)
assert [insn.id for insn in lp.find_instructions(knl, And((Tagged("out"), Writes("y"))))]
assert lp.find_instructions(knl, Id("last"))[0].assignee_var_names() == ("z",)
assert "acc" not in top.get_var_name_generator()("fresh")

knl = lp.split_iname(knl, "i", 8, outer_tag="g.0", inner_tag="l.0")
assert knl.iname_tags_of_type("i_outer", GroupInameTag)
a = np.random.default_rng(0).uniform(size=(20, 20))
evt, outs = knl(None, a=a)
assert np.allclose(outs["z"], 2 * a.sum(axis=1)[::-1])
