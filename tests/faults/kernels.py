"""Kernels on which faults matter."""

from __future__ import annotations

import loopkit as lk


def make(domains: str | list[str], text: str, floats: str, **more: object) -> lk.Kernel:
    """A kernel all of whose arrays are float32."""
    return lk.make_kernel(domains, text, dtypes={floats: "float32"}, **more)


def added() -> lk.Kernel:
    """Each instance counts: one that runs twice, or never, shows."""
    return make("{ [i]: 0 <= i < n }", "b[i] = b[i] + a[i] {id=s}", "a, b", assumptions="n >= 1")


def guarded() -> lk.Kernel:
    """The neighbour before, if there is one: what is not read need not be there."""
    return make(
        "{ [i]: 0 <= i < n }",
        "f(j) := if(j > 0, a[j - 1], 0)\nb[i] = f(i) + 1 {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def added_ten() -> lk.Kernel:
    """The same for ten elements."""
    return make("{ [i]: 0 <= i < 10 }", "b[i] = b[i] + a[i] {id=s}", "a, b")


def moved() -> lk.Kernel:
    """Rows and columns, all different."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "b[i, j] = b[i, j] + a[i, j] {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def turned() -> lk.Kernel:
    """A transposition."""
    return make(
        "{ [i, j]: 0 <= i, j < n }", "b[j, i] = a[i, j] {id=s}", "a, b", assumptions="n >= 1"
    )


def antidiagonal() -> lk.Kernel:
    """A dependence of distance (1, -1): the two loops must not be exchanged."""
    return make(
        "{ [i, j]: 1 <= i < n and 0 <= j < n - 1 }",
        "a[i, j] = a[i - 1, j + 1] + 1 {id=s}",
        "a",
        assumptions="n >= 2",
    )


def recurrence() -> lk.Kernel:
    """Rows are independent of each other, and each is a recurrence."""
    return make(
        "{ [i, j]: 0 <= i < 8 and 1 <= j < 8 }", "a[i, j] = a[i, j - 1] + a[i, j] {id=s}", "a"
    )


def apart() -> lk.Kernel:
    """Two loops, one shorter than the other."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < m }", "{ [k]: 0 <= k < n }"],
        """
        b[i] = 2*a[i] {id=s}
        c[j] = c[j] + 1 {id=t}
        d[k] = d[k] + 1 {id=u}
        """,
        "a, b, c, d",
        assumptions="n, m >= 1",
    )


def handed_on() -> lk.Kernel:
    """One statement uses what the one before it wrote, in the same loop."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            b[i] = 2*a[i] {id=s}
            c[i] = c[i] + b[i] {id=t}
        end
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def between() -> lk.Kernel:
    """What the second loop needs stands between two loops."""
    return make(
        ["{ [i]: 0 <= i < n }"],
        """
        b[i] = 2*a[i] {id=s}
        d[0] = e[0] + 1 {id=u}
        c[i] = c[i] + d[0] {id=t}
        """,
        "a, b, c, d, e",
        assumptions="n >= 1",
    )


def ahead() -> lk.Kernel:
    """Two loops, the second of which reads what a later iteration of the first writes."""
    return make(
        ["{ [i, j]: 0 <= i, j < n - 1 }"],
        """
        b[i] = 2*a[i] {id=s}
        c[j] = c[j] + b[j + 1] {id=t}
        """,
        "a, b, c",
        assumptions="n >= 3",
    )


def short_rows() -> lk.Kernel:
    """Rows of at most four, the first ones shorter."""
    return make(
        ["{ [i, j]: 0 <= i < n and 0 <= j < 4 and j <= i }"],
        "b[i, j] = b[i, j] + a[j] {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def ping_pong() -> lk.Kernel:
    """A step in time: all of one array, then all of the other."""
    return make(
        ["{ [t]: 0 <= t < T }", "{ [i]: 0 <= i < 8 }", "{ [j]: 0 <= j < 8 }"],
        """
        for t
            for i
                b[i] = 2*a[i] + t {id=there}
            end
            for j
                a[j] = b[j] + 1 {id=back}
            end
        end
        """,
        "a, b",
        assumptions="T >= 1",
    )


def row_sums() -> lk.Kernel:
    """A sum for each row."""
    return make(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        "c[i] = sum(k, a[i, k]) {id=s}",
        "a, c",
        assumptions="n >= 1",
    )


def stencil() -> lk.Kernel:
    """Three neighbours."""
    return make(
        "{ [i]: 1 <= i < n - 1 }",
        "b[i] = a[i - 1] + 2*a[i] + 3*a[i + 1] {id=s}",
        "a, b",
        assumptions="n >= 3",
    )


def table_of_two() -> lk.Kernel:
    """A table that two statements fill, in which data look something up."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 4 and 4 <= k < 8 }",
        "t[j] = a[j] {id=low}\nt[k] = 2*a[k] {id=high}\nb[i] = t[p[i]] {id=s}",
        [lk.TemporaryVariable("t", shape=8), lk.GlobalArg("p", shape="n"), ...],
        dtypes={"a, b, t": "float32", "p": "int32"},
        assumptions="n >= 1",
    )
    return knl.assume_within("p", 0, 8)


def product() -> lk.Kernel:
    """The product of two matrices."""
    return make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k]*b[k, j]) {id=s}",
        "a, b, c",
        assumptions="n, m, l >= 1",
    )


def scaled_in_place() -> lk.Kernel:
    """An array is added to, then doubled by another statement, in each step of a loop."""
    return make(
        ["{ [t]: 0 <= t < T }", "{ [j]: 0 <= j < 6 }", "{ [k]: 0 <= k < 6 }"],
        """
        for t
            for j
                c[j] = c[j] + a[j] {id=add}
            end
            for k
                c[k] = 2*c[k] {id=double}
            end
        end
        """,
        "a, c",
        assumptions="T >= 1",
    )


def loops_in_front() -> lk.Kernel:
    """Loops in front of uses of a rule: one too short for its values, one writes what it reads."""
    return make(
        "{ [i, j, p, q]: 0 <= i < n and 0 <= j, q < 8 and 0 <= p < 6 }",
        """
        f(x) := 2*a[x]
        g(x) := 3*t[7 - x]
        for i
            for p
                <> s[p] = b[i, p]
            end
            for q
                <> t[q] = b[i, q]
            end
            c[i, j] = g(j)*g(7 - j) + f(8*i + j)*s[j % 6]
        end
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def tagged_stencil() -> lk.Kernel:
    """Two uses with a tag, of an array that is like another."""
    return make(
        "{ [i]: 0 <= i < n - 1 }",
        "c[i] = a$near[i] + 2*a$near[i + 1] + b[i] - b[i + 1] {id=s}",
        "a, b, c",
        assumptions="n >= 2",
    )


def updated_tagged() -> lk.Kernel:
    """:func:`updated`, the sums in ``c`` with a tag."""
    return make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 4 and 0 <= k < 3 }",
        """
        for i
            for k
                for j
                    c$sums[i, j] = c$sums[i, j] + a[i, k]*b[k, j] {id=s}
                end
            end
        end
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def updated() -> lk.Kernel:
    """An array that two loops update, one after the other."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 3 }", "{ [j]: 0 <= j < 6 }"],
        """
        for i
            for k
                for j
                    c[i, j] = c[i, j] + a[i, k, j] {id=add}
                end
            end
        end
        """,
        "a, c",
        assumptions="n >= 1",
    )


def through_scalar() -> lk.Kernel:
    """A value that goes through a temporary."""
    return make(
        "{ [i, j]: 0 <= i < 4 and 0 <= j < 4 }",
        """
        for i
            for j
                <> t = 2*a[i, j] {id=first}
                b[i, j] = t + 1 {id=second}
                c[i, j] = t*t {id=third}
            end
        end
        """,
        "a, b, c",
    )


def rules() -> lk.Kernel:
    """Substitution rules with two arguments."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        f(x, y) := a[x, y] + 2*x
        b[i, j] = f(i, j) {id=s}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def ruled_row() -> lk.Kernel:
    """A rule with a halo."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        """
        f(x) := 2*a[x] + 1
        b[i, j] = f(i + j) {id=s}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def ruled_sums() -> lk.Kernel:
    """A rule that sums up rows, with a halo."""
    return make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 4 and 0 <= k < m }",
        """
        f(x) := 2*sum(k, a[x, k]*c[k])
        b[i, j] = f(i + j) + f(i + j + 1) {id=s}
        """,
        "a, b, c",
        assumptions="n, m >= 1",
    )


def ruled_products() -> lk.Kernel:
    """A rule with a sum inside of a sum, with a halo."""
    return make(
        "{ [i, j, k, l]: 0 <= i < n and 0 <= j < 4 and 0 <= k, l < m }",
        """
        f(x) := 2*sum(l, c[l]*sum(k, a[x, k]*c[k]))
        b[i, j] = f(i + j) + f(i + j + 1) {id=s}
        """,
        "a, b, c",
        assumptions="n, m >= 1",
    )


def ruled_places() -> lk.Kernel:
    """A rule that finds the largest value of a row and its place."""
    return make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 4 and 0 <= k < m }",
        """
        f(x) := argmax(k, a[x, k]*c[k], k)
        b[i, j], d[i, j] = f(i + j) {id=s}
        """,
        "a, b, c",
        assumptions="n, m >= 1",
    )


def ruled_segments() -> lk.Kernel:
    """A rule that sums up the last segment of a row."""
    return make(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 4 and 0 <= k < m }",
        """
        f(x) := reduce(segmented(sum), k, a[x, k]*c[k], c[k] < 0)
        b[i, j] = f(i + j) + f(i + j + 1) {id=s}
        """,
        "a, b, c",
        assumptions="n, m >= 1",
    )


def beside_a_triangle() -> lk.Kernel:
    """Sums that have no iteration for the last ``k``, and a statement that has one."""
    return make(
        ["{ [k]: 0 <= k < n }", "{ [j]: k < j < n }"],
        """
        for k
            d[k] = b[k] + 1 {id=first}
            for j
                c[j] = c[j] + b[k] {id=sum}
            end
        end
        """,
        "b, c, d",
        assumptions="n >= 1",
    )


def ruled_by_data() -> lk.Kernel:
    """A rule of what data choose, used twice."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        """
        f(x) := 2*a[x] + 1
        b[i, j] = f(p[j]) + i*f(p[j]) {id=s}
        """,
        [lk.GlobalArg("a", shape="n"), ...],
        dtypes={"a, b": "float32", "p": "int32"},
        assumptions="n >= 1",
    )


def chosen_by_data() -> lk.Kernel:
    """Reads near to an iname, of which data say how near."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        "f(q) := 2*a[q] + 1\nb[i, j] = i*f(i + near[j]) + f(i + near[3 - j]) {id=s}",
        [lk.GlobalArg("a", shape="n + 3"), lk.GlobalArg("near", shape=4), ...],
        dtypes={"a, b": "float32", "near": "int32"},
        assumptions="n >= 1",
    ).assume_within("near", 0, 4)


def ruled_by_product(product: str = "i*m") -> lk.Kernel:
    """A rule of arguments that are not affine, and lie beside each other."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        f"""
        f(x) := 2*a[x] + 1
        b[i, j] = f({product} + j) + i*f({product} + j + 1) {{id=s}}
        """,
        [lk.GlobalArg("a", shape="n*n + n*m"), ...],
        dtypes={"a, b": "float32"},
        assumptions="n >= 1 and m >= 5",
    )


def flat_rows() -> lk.Kernel:
    """Neighbours in rows and columns of an array that lies flat."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < 4 and 0 <= j < 4 }",
        "b[i, j] = a[i*m + j] + 2*a[(i + 1)*m + j + 1] {id=s}",
        [lk.GlobalArg("a", shape="5*m"), ...],
        dtypes={"a, b": "float32"},
        assumptions="m >= 5",
    )


def ruled_by_some_places(rule: str = "a[place[x]]") -> lk.Kernel:
    """A rule of which some values are used; of the others an index array may lie."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 4 }",
        f"f(x) := {rule}\nb[i] = f(0) + f(2) + f(5) {{id=s}}",
        [lk.GlobalArg("a", shape="m"), lk.GlobalArg("place", "int32", shape=6), ...],
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
    )


def rule_with_free_iname() -> lk.Kernel:
    """A rule whose value depends on a loop that no argument names."""
    return make(
        "{ [i, j, k]: 0 <= i < 4 and 0 <= j < 4 and 0 <= k < m }",
        """
        f(x) := 2*a[i, x] + 1
        b[k, i, j] = f(j) {id=s}
        """,
        "a, b",
        assumptions="m >= 1",
    )


def rule_in_a_rule() -> lk.Kernel:
    """A rule with a halo, by way of another one."""
    return make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }",
        """
        f(x) := 2*a[x] + 1
        g(x) := f(x) - f(x + 1)
        b[i, j] = g(i + j) {id=s}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def repeated() -> lk.Kernel:
    """A statement that runs several times for the same cell."""
    return make(
        ["{ [i, r]: 0 <= i < n and 0 <= r < 3 }", "{ [spare]: 0 <= spare < 7 }"],
        """
        for i, r
            b[i] = b[i] + 1 {id=s}
        end
        """,
        "b",
        assumptions="n >= 1",
    )


def staged() -> lk.Kernel:
    """A temporary array that one loop fills and the next reads the other way round."""
    return make(
        ["{ [g]: 0 <= g < n }", "{ [i]: 0 <= i < 8 }", "{ [j]: 0 <= j < 8 }"],
        """
        for g
            for i
                <> t[i] = a[8*g + i] {id=fill}
            end
            for j
                b[8*g + j] = t[7 - j] {id=drain}
            end
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def squares() -> lk.Kernel:
    """A temporary with two axes."""
    return make(
        "{ [i, j, k, l]: 0 <= i, j, k, l < 4 }",
        """
        <> t[i, j] = a[i, j] {id=fill}
        b[l, k] = t[l, k] {id=drain}
        """,
        "a, b",
    )


def rules_of_four() -> lk.Kernel:
    """A rule with two arguments, of constant extents."""
    return make(
        "{ [i, j]: 0 <= i, j < 4 }",
        """
        f(x, y) := a[x, y] + 2*x
        b[i, j] = f(i, j) {id=s}
        """,
        "a, b",
    )


def through_array() -> lk.Kernel:
    """A temporary array that one statement computes and another reads."""
    return make(
        "{ [i, j]: 0 <= i < n + 1 and 0 <= j < n }",
        """
        <> t[i] = 2*a[i] {id=fill}
        b[j] = t[j] + t[j + 1] {id=use}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def scaled_by_size() -> lk.Kernel:
    """A size among the values."""
    return make("{ [i]: 0 <= i < n }", "b[i] = n*a[i] {id=s}", "a, b", assumptions="n >= 1")


def conditional() -> lk.Kernel:
    """A condition on an iname."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        if 2*i < n
            b[i] = b[i] + a[i] {id=s}
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def conditional_on_data() -> lk.Kernel:
    """A condition on data."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        if a[i] < 8
            b[i] = b[i] + a[i] {id=s}
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def waves() -> lk.Kernel:
    """A function, and a difference."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            b[i] = sin(a[i]) {id=s}
            c[i] = a[i] - b[i] {id=t}
        end
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def tripled() -> lk.Kernel:
    """Integers that a float64 cannot hold."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = 3*a[i] {id=s}",
        dtypes={"a, b": "int64"},
        assumptions="n >= 1",
    )


def rounded() -> lk.Kernel:
    """A cast to integers and back."""
    return make(
        "{ [i]: 0 <= i < n }",
        "b[i] = cast(int32, a[i]) {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def scattered() -> lk.Kernel:
    """Writes go where an index array says."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[p[i]] = a[i] {id=s}",
        dtypes={"a, b": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("b", shape="n"), lk.GlobalArg("a", shape="n"), ...],
        assumptions="n >= 1",
    )


def gathered() -> lk.Kernel:
    """Reads come from where an index array says."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = a[p[i]] {id=s}",
        dtypes={"a, b": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("a", shape="n"), ...],
        assumptions="n >= 1",
    )


def scattered_beside() -> lk.Kernel:
    """Writes that go where data says, and a loop beside that is there to be tagged."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < 4 }", "{ [j]: 0 <= j < 4 }"],
        """
        b[p[i]] = a[i] {id=s}
        c[j] = a[j] {id=t}
        """,
        dtypes={"a, b, c": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("b", shape="n"), ...],
        assumptions="n >= 4",
    )


def added_sixteen() -> lk.Kernel:
    """The same for sixteen elements."""
    return make("{ [i]: 0 <= i < 16 }", "b[i] = b[i] + a[i] {id=s}", "a, b")


def doubled() -> lk.Kernel:
    """A temporary that is changed in place."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = a[i] + 1 {id=first}
            t = 2*t {id=double}
            b[i] = t {id=last}
        end
        """,
        "a, b",
        assumptions="n >= 1",
    )


def overlaid() -> lk.Kernel:
    """The second of two loops overwrites half of what the first one wrote."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= 2*j < n }"],
        """
        b[i] = a[i] {id=all}
        b[2*j] = 2*a[j] {id=half}
        """,
        "a, b",
        assumptions="n >= 1",
    )


def kept() -> lk.Kernel:
    """What one loop reads, the next one overwrites."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        """
        c[i] = b[i] {id=keep}
        b[j] = a[j] {id=overwrite}
        """,
        "a, b, c",
        assumptions="n >= 1",
    )


def flagged() -> lk.Kernel:
    """A condition on what another loop computes."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        """
        for i
            f[i] = 2*a[i] {id=flag}
        end
        for j
            if f[j] < 20
                b[j] = b[j] + 1 {id=count}
            end
        end
        """,
        "a, b, f",
        assumptions="n >= 1",
    )


def indexed() -> lk.Kernel:
    """An index that another loop computes."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        """
        p[i] = n - 1 - i {id=number}
        b[j] = a[p[j]] {id=gather}
        """,
        dtypes={"a, b": "float32", "p": "int32"},
        kernel_data=[lk.GlobalArg("a", shape="n"), ...],
        assumptions="n >= 1",
    )


def neighbours() -> lk.Kernel:
    """Each iteration reads what the next one overwrites."""
    return make(
        "{ [i]: 0 <= i < 7 }",
        """
        for i
            b[i] = a[i] {id=s}
            c[i] = b[i + 1] {id=t}
        end
        """,
        "a, b, c",
    )


def one_apart() -> lk.Kernel:
    """What one thread writes, its neighbour reads: the loops begin at different numbers."""
    return make(
        ["{ [i]: 0 <= i < 8 }", "{ [j]: 1 <= j <= 8 }"],
        """
        <> t[i] = a[i] {id=fill}
        if j < 8
            b[j] = t[j] {id=drain}
        end
        """,
        "a, b",
    )


def three_terms() -> lk.Kernel:
    """A sum whose order matters."""
    return make(
        "{ [i]: 0 <= i < n }",
        "d[i] = a[i] + b[i] + c[i] {id=s}",
        "a, b, c, d",
        assumptions="n >= 1",
    )


def chosen() -> lk.Kernel:
    """A choice within an expression."""
    return make(
        "{ [i]: 0 <= i < n }",
        "b[i] = if(i > 0, a[i], 2*a[i] + 5) {id=s}",
        "a, b",
        assumptions="n >= 1",
    )


def maybe_never() -> lk.Kernel:
    """A loop that has no iterations where another one is empty."""
    return make(
        "{ [i, j]: 0 <= i < n and i <= j < m }",
        "b[i] = b[i] + 1 {id=s}",
        "b",
        assumptions="n >= 1 and m >= 0",
    )


def scaled() -> lk.Kernel:
    """A scalar argument."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = scale*a[i] {id=s}",
        dtypes={"a, b": "float32"},
        kernel_data=[lk.ValueArg("scale", "int32"), ...],
        assumptions="n >= 1",
    )


def sparse() -> lk.Kernel:
    """Sums over rows whose bounds are loaded."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "[lo, hi] -> { [j]: lo <= j < hi }"],
        """
        for i
            <> lo = start[i] {id=begin}
            <> hi = start[i + 1] {id=end}
            for j
                y[i] = y[i] + x[j] {id=s}
            end
        end
        """,
        dtypes={"x, y": "float32", "start": "int32"},
        kernel_data=[lk.GlobalArg("x", shape=(8,)), ...],
        assumptions="n >= 1",
    ).assume_within("start", 0, 8)


def two_inputs() -> lk.Kernel:
    """Two arrays that are read alike."""
    return make(
        "{ [i]: 0 <= i < n }", "c[i] = a[i] + 2*b[i] {id=s}", "a, b, c", assumptions="n >= 1"
    )


def scaled_integers() -> lk.Kernel:
    """A product in 32 bits, kept in 64."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "b[i] = n*a[i] {id=s}",
        dtypes={"a": "int32", "b": "int64"},
        assumptions="n >= 1",
    )


def half_updated() -> lk.Kernel:
    """Only every second cell is updated."""
    return make(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 3 }", "{ [j]: 0 <= j < 6 }"],
        """
        for i
            for k
                for j
                    if j < 4
                        c[i, j] = c[i, j] + a[i, k, j] {id=add}
                    end
                end
            end
        end
        """,
        "a, c",
        assumptions="n >= 1",
    )


def stages(wide: str = "float32") -> lk.Kernel:
    """Three arrays, each filled from the one before, in the other direction."""
    return lk.make_kernel(
        "{ [b, k, i, j, p, q]: 0 <= b < n and 0 <= k < 4 and 0 <= i, j, p, q < 128 }",
        f"""
        for b, k
            <float32> t[i] = x[b, k, i]                 {{id=t}}
            <{wide}> r[j] = {wide}(t[127 - j])*2        {{id=r}}
            <{wide}> s[p] = r[127 - p] + 1              {{id=s}}
            y[b, k, q] = s[127 - q]                     {{id=y}}
        end
        """,
        [
            lk.GlobalArg("x", "float32", shape="n, 4, 128"),
            lk.GlobalArg("y", wide, shape="n, 4, 128"),
            ...,
        ],
        assumptions="n >= 1",
        name="stages",
    )


def with_idle() -> lk.Kernel:
    """Values for all iterations, one of which nobody needs."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        <> t = 2*a[0] {id=first}
        <> idle = a[1] + 1 {id=idle}
        b[0] = t + 1 {id=head}
        c[i] = t*a[i] {id=out}
        """,
        "a, b, c",
        assumptions="n >= 2",
    )


def with_count() -> lk.Kernel:
    """What is done once, beside what is done by each thread."""
    return make(
        "{ [i]: 0 <= i < 8 }",
        """
        <> t = 2*a[0] {id=first}
        b[0] = b[0] + t {id=count}
        c[i] = t*a[i] {id=out}
        """,
        "a, b, c",
    ).tag_inames("i: l.0")


def turned_rows() -> lk.Kernel:
    """Two temporaries that are read backwards."""
    return make(
        "{ [i, j]: 0 <= i, j < 8 }",
        """
        for i
            <> t[i] = 2*a[i] {id=t}
            <> u[i] = a[i] + 1 {id=u}
        end
        for j
            b[j] = t[7 - j]*u[j] {id=out}
        end
        """,
        "a, b",
    )


def rows_apart() -> lk.Kernel:
    """A row of values for each iteration."""
    return make(
        "{ [i, j, k]: 0 <= i, j, k < 4 }",
        """
        for i
            for j
                <> t[i, j] = 2*a[i, j] {id=t}
            end
            for k
                b[i, k] = t[i, 3 - k] {id=out}
            end
        end
        """,
        "a, b",
    )


def gathered_rows() -> lk.Kernel:
    """Sums of columns of a funnel, of which each thread keeps its own."""
    knl = make(
        "{ [h, b, j, k]: 0 <= b < n and 0 <= h, j, k < 8 and 3 - b <= j <= 4 + b }",
        """
        <float32> s[h] = 0
        for b, j
            s[j] = s[j] + x[b, j]
        end
        y[k] = s[k]
        """,
        "x, y",
    )
    knl = knl.tag_inames("h: l.0, j: l.0, k: l.0")
    return knl.set_temporary_address_space("s", "private")


def repeated_in_a_loop() -> lk.Kernel:
    """Values that each iteration of a loop, which may have none, makes again."""
    return make(
        "{ [i]: 0 <= i < n }",
        """
        for i
            b[0] = 2*a[0] {id=first}
            <> t = a[1] + 1 {id=second}
            c[i] = t*b[0] {id=out}
        end
        """,
        "a, b, c",
        assumptions="n >= 0",
    )
