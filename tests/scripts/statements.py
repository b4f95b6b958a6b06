"""Instructions tagged, duplicated loops, loops put around what needs none, and priorities."""

import numpy as np

import loopkit.loopy as lp
from loopkit.loopy.kernel.data import AddressSpace

knl = lp.make_kernel(
    "{ [i, ii]: 0 <= i, ii < 96 }",
    """
    <> scale = 2*s[0]               {id=scale,tags=setup}
    for i
        <> t[i] = scale*x[i]        {id=fill,dep=scale}
    end
    for ii
        y[ii] = t[95 - ii]          {id=use,dep=fill,nosync=scale}
    end
    """,
    [lp.GlobalArg("x, y", np.float32, shape=(96,)), lp.GlobalArg("s", np.float32, shape=(1,))],
    seq_dependencies=True,
)
ref_knl = knl
knl = lp.tag_instructions(knl, "mine", "writes:t or writes:y")
assert [insn.id for insn in lp.find_instructions(knl, "tag:mine")] == ["fill", "use"]
knl = lp.set_temporary_address_space(knl, "t", AddressSpace.LOCAL)
knl = lp.tag_inames(knl, {"i": "l.0", "ii": "l.0"})
knl = lp.add_inames_to_insn(knl, "i", "tag:setup")
knl = lp.set_instruction_priority(knl, "id:fill", 10)
knl = lp.add_nosync(knl, "local", "id:fill", "id:scale")
assert str(lp.find_unused_axis_tag(knl, "l", "id:use")) == "l.1"
knl = lp.preprocess_kernel(knl)
knl = lp.get_one_scheduled_kernel(knl)
assert "__syncthreads" in lp.generate_code_v2(knl).all_code()
lp.auto_test_vs_ref(ref_knl, None, knl, quiet=True)
