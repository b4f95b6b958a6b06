"""Questions about whole numbers that schedules ask, with their answers.

``claims`` are to hold under a context; ``one_to_one`` asks whether cells determine names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PROVEN, REFUTED, OPEN, EITHER = "Proven", "Refuted", "Open", "?"
INT32 = (1, 2**31 - 1)
SIGNED = (-(2**31), 2**31 - 1)


@dataclass(frozen=True)
class Question:
    """A claim, or cells and the names that they are to determine; and what is expected."""

    about: str
    texts: tuple[str, ...]
    context: str
    names: str = ""
    answer: str = PROVEN
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)


QUESTIONS: list[Question] = []


def claim(
    about: str, text: str, context: str, answer: str = PROVEN, **bounds: tuple[float, float]
) -> None:
    """Something that holds under a context."""
    QUESTIONS.append(Question(about, (text,), context, "", answer, bounds))


def one_to_one(
    about: str,
    cells: str,
    context: str,
    names: str,
    answer: str = PROVEN,
    **bounds: tuple[float, float],
) -> None:
    """Cells, parted by ``;``, of which equal ones have equal values of the names."""
    QUESTIONS.append(Question(about, tuple(cells.split(";")), context, names, answer, bounds))


def morton(a: str, b: str, bits: int) -> str:
    """The bits of two numbers in turn."""
    one = (f"{4**t}*({a}//{2**t} % 2) + {2 * 4**t}*({b}//{2**t} % 2)" for t in range(bits))
    return " + ".join(one)


# Quotients and remainders.
claim("a quotient of a tile", "(16*t + s)//128 == t//8", "0 <= s < 16")
claim("a remainder of a tile", "(16*t + s) % 16 == s", "0 <= s < 16")
claim("a quotient and its remainder", "m*(x//m) + x % m == x", "m >= 1")
claim("the same by what may be 0", "m*(x//m) + x % m == x", "", REFUTED)
claim("a polynomial", "i*n + 16*o + r == (i*n + r) + o*16", "")
claim("a difference of squares", "(a + b)*(a - b) == a*a - b*b", "")
claim("the length of a full tile", "min(16, n - 16*o) == 16", "16*o + 15 < n and o >= 0")
claim("ten digits", "10*(x//10) + x % 10 == x", "")
claim("two quotients are one", "q//o//m == q//(o*m)", "q >= 0 and m >= 1 and o >= 1")
claim("a size that a tile divides", "128*(n//128) == n", "n % 128 == 0")
claim(
    "a tile of symbolic size",
    "i//t*t + i % t < n and i//t < n//t",
    "0 <= i < n and n % t == 0 and t >= 1",
    n=INT32,
    t=INT32,
)
claim("full tiles are inside", "o*t + s < n", "0 <= o < n//t and 0 <= s < t")
claim("rounded up is enough", "n <= t*((n + t - 1)//t)", "t >= 1 and n >= 0")
claim("rounded up is less than a tile more", "t*((n + t - 1)//t) < n + t", "t >= 1 and n >= 0")
claim(
    "a guard that is not needed",
    "128*o + s < n",
    "n % 128 == 0 and 0 <= s < 128 and 0 <= o and 128*o < n",
)
# Joined loops.
claim("the loops of a joined one", "k//m == i and k % m == j", "k == i*m + j and 0 <= j < m")
claim(
    "the first of joined loops ends", "q//m < n and 0 <= q//m", "0 <= q < n*m and m >= 1 and n >= 0"
)
claim("rows and columns of a flat index", "(q//m)*m + q % m == q", "m >= 1")
claim(
    "three joined loops",
    "q//(m*o) == i and q//o % m == j and q % o == k",
    "q == (i*m + j)*o + k and 0 <= i < n and 0 <= j < m and 0 <= k < o",
)
claim("a remainder of a joined one", "(q//m*m + q % m) % 5 == q % 5", "0 <= q < n*m and m >= 1")
claim(
    "the same with names",
    "(a*m + b) % 5 == q % 5",
    "a == q//m and b == q % m and m >= 1 and q >= 0",
)
# Inside of flat arrays.
claim("a flat index is inside", "0 <= i*m + j < n*m", "0 <= i < n and 0 <= j < m")
claim("one too many", "0 <= i*m + j < n*m", "0 <= i < n and 0 <= j <= m", REFUTED, n=INT32, m=INT32)
claim("rows follow each other", "i*m + j < k*m + l", "0 <= j < m and 0 <= l < m and i < k")
claim("a stencil of flat rows", "i*m + j + m < n*m", "0 <= i < n - 1 and 0 <= j < m")
claim(
    "a tile with a halo",
    "b*(t - 2) + s < n + t",
    "0 <= s < t and t >= 3 and 0 <= b and b*(t - 2) < n",
)
claim(
    "a convolution's window",
    "(y*s + v)*w + x*s + u < h*w",
    "0 <= y < p and 0 <= v < k and 0 <= x < p and 0 <= u < k and (p - 1)*s + k <= h"
    " and (p - 1)*s + k <= w and s >= 1 and k >= 1 and p >= 1",
)
claim("a wavefront", "w - i < m and w - i >= 0", "0 <= i < n and i <= w and w < i + m")
claim("batches", "b*n*m + i*m + j < k*n*m", "0 <= b < k and 0 <= i < n and 0 <= j < m")
claim("a product of sizes", "n*m > 0", "n > 0 and m > 0")
claim("no smaller than a factor", "n <= n*m", "n >= 1 and m >= 1")
claim(
    "a packed triangle is inside",
    "0 <= i*(i + 1)//2 + j and i*(i + 1)//2 + j < n*(n + 1)//2",
    "0 <= j <= i and i < n",
)
claim("two-sided bounds", "i + k >= n", "i >= max(0, n - k)")
# Numbers.
claim("a square", "x <= x*x", "")
claim("both extrema", "max(a, b) + min(a, b) == a + b", "")
claim("a magnitude", "abs(x) >= 0", "")
claim("factors in another order", "a*(b*f) == f*(a*b)", "")
claim("a sum that telescopes", "(n - i - 1) + i + 1 == n", "")
claim("quotients and remainders determine", "x == y", "x//m == y//m and x % m == y % m and m >= 1")
claim("a sum of squares", "x == 0 and y == 0", "x*x + y*y == 0")
claim("Pythagoras", "x*x + y*y != z*z", "x >= 1 and y >= 1 and z >= 1", REFUTED)
claim("Fermat", "x*x*x + y*y*y != z*z*z", "x >= 1 and y >= 1 and z >= 1", EITHER)
# Types.
claim(
    "a tile in 64 bits",
    "-9223372036854775808 <= 16*o + s <= 9223372036854775807",
    "0 <= s < 16 and 0 <= 16*o + s and 16*o + s < n and n < 9007199254740992",
)
claim(
    "a flat index in 32 bits",
    "i*m + j <= 2147483647",
    "0 <= i < n and 0 <= j < m and n*m <= 2147483647",
)
claim(
    "half a difference in 32 bits", "-2147483648 <= (r - n)//2 <= 2147483647", "", r=SIGNED, n=INT32
)
claim(
    "a difference in 32 bits", "-2147483648 <= r - n <= 2147483647", "", REFUTED, r=SIGNED, n=INT32
)
claim("an average", "-2147483648 <= a + (b - a)//2 <= 2147483647", "", a=SIGNED, b=SIGNED)
claim("a sum that wraps", "wrap(int32, x + y) == x + y", "", REFUTED, x=SIGNED, y=SIGNED)
claim("an unsigned number", "wrap(uint32, x) >= 0", "", x=SIGNED)
claim(
    "an unsigned check of bounds",
    "a <= x and x < a + b",
    "wrap(uint32, x - a) < b",
    x=SIGNED,
    a=(0, 2**30),
    b=(0, 2**30),
)
# Bits.
claim("two bits of a number", "(x & 24) == 8*(x//8 % 4)", "")
claim("a sum by bits", "a + b == (a ^ b) + 2*(a & b)", "0 <= a < 65536 and 0 <= b < 65536")
claim("a neighbour is another one", "4*(i//4) + ((i % 4) ^ 1) != i", "0 <= i < 64")
claim("Gray codes are inside", "(i ^ (i >> 1)) < 1048576", "0 <= i < 1048576")
claim(
    "a neighbour is inside of the row",
    "0 <= i*m + (j ^ 1) < n*m",
    "0 <= i < n and 0 <= j < m and m % 2 == 0",
)
claim("an exclusive or undone", "((a + b) ^ b ^ b) == a + b", "")
# One to one.
one_to_one(
    "flat rows of unknown length, if rows are short",
    "i*n + j",
    "0 <= i < 4 and 0 <= j < m",
    "ij",
    REFUTED,
    n=(1, 6),
    m=(1, 6),
)
one_to_one("Gray codes", "i ^ (i >> 1)", "0 <= i < 1048576", "i")
one_to_one("Gray codes of 32 bits", "i ^ (i >> 1)", "0 <= i < n", "i", n=INT32)
one_to_one("Gray codes of 64 bits", "i ^ (i >> 1)", "0 <= i < n", "i", n=(1, 2**63 - 1))
one_to_one("Gray codes without end", "i ^ (i >> 1)", "0 <= i < n", "i", OPEN)
one_to_one(
    "neighbours in even rows",
    "i*m + (j ^ 1)",
    "0 <= i < n and 0 <= j < m and m % 2 == 0 and m >= 2",
    "ij",
)
one_to_one(
    "neighbours in odd rows",
    "i*m + (j ^ 1)",
    "0 <= i < n and 0 <= j < m and m % 2 == 1 and m >= 3 and n >= 2",
    "ij",
    REFUTED,
    n=(2, 9),
    m=(3, 9),
)
one_to_one("flat rows", "i*m + j", "0 <= i < n and 0 <= j < m", "ij")
one_to_one("three axes", "(i*m + j)*o + k", "0 <= i < n and 0 <= j < m and 0 <= k < o", "ijk")
one_to_one(
    "three axes under a guard",
    "(i*m + j)*o + k",
    "0 <= i < n and 0 <= j < m and 0 <= k < o and i + j + k < n",
    "ijk",
)
one_to_one(
    "four axes",
    "((i*m + j)*o + k)*p + l",
    "0 <= i < n and 0 <= j < m and 0 <= k < o and 0 <= l < p",
    "ijkl",
)
one_to_one(
    "rows that are too long",
    "i*m + j",
    "0 <= i < n and 0 <= j <= m",
    "ij",
    REFUTED,
    n=(2, 9),
    m=(1, 9),
)
one_to_one("a packed triangle", "i*(i + 1)//2 + j", "0 <= j <= i and i < n", "ij")
one_to_one(
    "a strict packed triangle", "i*(i - 1)//2 + j", "0 <= j < i and i < n and n <= 32768", "ij"
)
one_to_one("a packed upper triangle", "i*n - i*(i - 1)//2 + j - i", "0 <= i <= j and j < n", "ij")
one_to_one("Morton order, 16 x 16", morton("i", "j", 4), "0 <= i < 16 and 0 <= j < 16", "ij")
one_to_one(
    "Morton order, 1024 x 1024",
    morton("i", "j", 10),
    "0 <= i < 1024 and 0 <= j < 1024",
    "ij",
    EITHER,
)
one_to_one(
    "Morton order by masks",
    "(((i | (i << 8)) & 16711935) | (((i | (i << 8)) & 16711935) << 4)) & 252645135",
    "0 <= i < 65536",
    "i",
)
one_to_one("a swizzle", "r;c ^ (r % 8)", "0 <= c < 32 and 0 <= r < 32", "rc")
one_to_one(
    "a flat swizzle", "r*64 + (c ^ ((r % 8)*8))", "0 <= c < 64 and 0 <= r < n", "rc", n=INT32
)
one_to_one(
    "a swizzle of any width",
    "r*w + (c ^ (r % 8))",
    "0 <= c < w and w == 8*u and 0 <= r < n",
    "rc",
    n=INT32,
    w=(8, 2**16),
    u=(1, 2**13),
)
one_to_one("a swizzle of powers of two", "(c ^ r) + 256*r", "0 <= c < 256 and 0 <= r < 256", "rc")
one_to_one("an exclusive or alone", "c ^ r", "0 <= c < 256 and 0 <= r < 256", "rc", REFUTED)
one_to_one("a swizzle of an address", "x ^ ((x & 448) >> 3)", "0 <= x < n", "x", n=INT32)
one_to_one(
    "bits in reverse",
    "(i & 1)*128 + (i & 2)*32 + (i & 4)*8 + (i & 8)*2"
    " + (i & 16)//2 + (i & 32)//8 + (i & 64)//32 + (i & 128)//128",
    "0 <= i < 256",
    "i",
)
one_to_one("an odd factor", "i*5 % 1048576", "0 <= i < 1048576", "i")
one_to_one("an even factor", "i*6 % 1048576", "0 <= i < 1048576", "i", REFUTED)
one_to_one(
    "any odd factor", "i*(2*k + 1) % 65536", "0 <= i < 65536 and 0 <= k < 32768", "i", EITHER
)
one_to_one("shifts that mix", "(i ^ (i >> 7) ^ (i << 3)) & 65535", "0 <= i < 65536", "i", EITHER)
one_to_one("bits that rotate", "((i << 5) | (i >> 27)) & 4294967295", "0 <= i < 4294967296", "i")
one_to_one("a rotation", "(i + s) % n", "0 <= i < n and 0 <= s < n", "i", n=INT32)
one_to_one("diagonals", "i;(i + j) % n", "0 <= i < n and 0 <= j < n", "ij", n=INT32)
one_to_one("diagonals of any size", "i;(i + j) % n", "0 <= i < n and 0 <= j < n", "ij")
