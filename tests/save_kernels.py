"""Kernels with values of threads, blocks and iterations that are to outlive a launch."""

from __future__ import annotations

import loopkit as lk


def made(body: str, domain: str = "0 <= i < n", **more) -> lk.Kernel:
    """Statements over ``i``, and others of the domain."""
    more.setdefault("assumptions", "n >= 0")
    types = {"x": "float32", **more.pop("dtypes", {})}
    return lk.make_kernel(f"{{ [i, j, k]: {domain} }}", body, dtypes=types, **more)


def power() -> lk.Kernel:
    """One value of each iteration, which two stores take."""
    return made(
        """
        for i
            <> v = x[i]*x[i] {id=square}
            y[i] = v + 1     {id=first}
            z[i] = v*y[i]    {id=second}
        end
        """,
        name="power",
    )


def tiles() -> lk.Kernel:
    """Four values of each iteration, of which the second store takes two."""
    return made(
        """
        for i
            <> t[k] = 2*x[i, k]       {id=load}
            y[i] = t[0] + t[3]        {id=first}
            z[i] = t[1]*y[i] + t[2]   {id=second}
        end
        """,
        "0 <= i < n and 0 <= k < 4",
        name="tiles",
    )


def exchange() -> lk.Kernel:
    """A row that the threads of a block hand to each other, twice."""
    return made(
        """
        for i
            <> t[j] = 2*x[i, j]           {id=load}
            y[i, k] = t[15 - k]           {id=first}
            z[i, k] = t[k]*y[i, k]   {id=second}
        end
        """,
        "0 <= i < n and 0 <= j, k < 16",
        name="exchange",
    ).tag_inames("i: g.0, j: l.0, k: l.0")


def centred() -> lk.Kernel:
    """The sum of a row, made by threads together, taken by two loops."""
    return made(
        """
        for i
            <> s = sum(j, x[i, j])    {id=total}
            y[i, k] = x[i, k] - s     {id=first}
            z[i] = s                  {id=second}
        end
        """,
        "0 <= i < n and 0 <= j, k < m",
        assumptions="n, m >= 0",
        name="centred",
    ).split_iname("j", 32, inner_tag="l.0")


def stepped() -> lk.Kernel:
    """A value that three launches, two of them in a loop, hand on."""
    return made(
        """
        <> t[i] = x[i]
        for k
            y[k, i] = t[i]
            ... gbarrier
            t[i] = t[i] + x[i]
        end
        ... gbarrier
        z[i] = t[i]
        """,
        "0 <= i < 16 and 0 <= k < n",
        name="stepped",
    )


def chosen() -> lk.Kernel:
    """A value that data decide."""
    return made(
        """
        for i
            <> t = 2*x[i]         {id=load}
            if x[i] > 0
                t = t + 3         {id=more}
            end
            y[i] = t              {id=first}
            z[i] = t*y[i]         {id=second}
        end
        """,
        name="chosen",
    )


def either() -> lk.Kernel:
    """A value that is one of two, and one that data may leave as the iteration before left it."""
    return made(
        """
        <> last = 0               {id=begin}
        for i
            if x[i] > 0
                <> t = 2*x[i]     {id=one}
            else
                t = x[i] - 1      {id=other}
            end
            last = t              {id=more, if=x[i] > 2}
            y[i] = t + last       {id=first}
            z[i] = t*y[i] - last  {id=second}
        end
        """,
        name="either",
    )


def broken_off() -> lk.Kernel:
    """A loop that data end, and a value that there is until then."""
    return made(
        """
        for i
            y[i, k] = 0               {id=zero}
            z[i, k] = 0               {id=nought}
            for j
                <> t = 2*x[i, j]      {id=load}
                y[i, j] = t           {id=first}
                break if x[i, j] > 2
                z[i, j] = t           {id=second}
            end
        end
        """,
        "0 <= i < n and 0 <= j, k < 4",
        name="broken_off",
    )


def some() -> lk.Kernel:
    """A value that there is under a condition on data."""
    return made(
        """
        for i
            y[i] = 0              {id=zero}
            z[i] = 0              {id=nought}
            if x[i] > 0
                <> t = 2*x[i]     {id=load}
                y[i] = t          {id=first}
                z[i] = t + 1      {id=second}
            end
        end
        """,
        name="some",
    )


def ended() -> lk.Kernel:
    """A value that a loop makes which data end."""
    return made(
        """
        for i
            <> t = x[i]           {id=load}
            for k
                t = t + x[i]      {id=more}
                break if t > 9
            end
            y[i] = t              {id=first}
            z[i] = t*y[i]         {id=second}
        end
        """,
        "0 <= i < n and 0 <= k < 4",
        name="ended",
    )
