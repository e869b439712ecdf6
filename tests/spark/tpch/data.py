"""The eight tables of a parts trade, made up: TPC-H's columns, sizes and spreads, our own words.

Sizes grow with `scale`; 1.0 is six million order lines, one gigabyte. The same seed gives the
same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]

_MONEY = pa.decimal128(12, 2)
#: The first and last day of an order, and the day on which everything is looked at.
_FIRST, _LAST, _TODAY = (
    int(np.datetime64(day).astype(int)) for day in ("1992-01-01", "1998-08-02", "1995-06-17")
)

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
#: Nations, each with the number of its region.
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4),
    ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2),
    ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
    ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
SEGMENTS = ("BOATS", "FARMING", "KITCHENS", "SCHOOLS", "TOYS")
PRIORITIES = ("1-NOW", "2-SOON", "3-NORMAL", "4-LATER", "5-WHENEVER")
MODES = ("BARGE", "BIKE", "DRONE", "PLANE", "TRAIN", "VAN", "VESSEL")
INSTRUCTIONS = ("HAND OVER", "LEAVE AT GATE", "RING TWICE", "NO RUSH")
_TYPE_WORDS = (
    ("BASIC", "CLASSIC", "HEAVY", "LIGHT", "OFFER", "RARE"),
    ("BRUSHED", "CAST", "FORGED", "MILLED", "PAINTED"),
    ("BRONZE", "CHROME", "IRON", "OAK", "ZINC"),
)
TYPES = tuple(
    f"{a} {b} {c}" for a in _TYPE_WORDS[0] for b in _TYPE_WORDS[1] for c in _TYPE_WORDS[2]
)
CONTAINERS = tuple(
    f"{size} {kind}"
    for size in ("TINY", "SMALL", "MIDDLE", "LARGE", "GIANT")
    for kind in ("BAG", "BARREL", "BASKET", "BOX", "CAN", "CRATE", "JAR", "TUBE")
)
BRANDS = tuple(f"Make#{maker}{line}" for maker in range(1, 6) for line in range(1, 6))
_HUES = (
    "amber", "apricot", "ash", "brick", "butter", "clay", "cobalt", "copper", "fern", "flax", "fog",
    "honey", "ink", "moss", "olive", "pearl", "plum", "rust", "sand", "slate", "straw", "teal",
    "wine",
)  # fmt: skip
#: Words of which five make the name of a part.
COLOURS = tuple(f"{shade}{hue}" for shade in ("", "pale", "deep", "dusty") for hue in _HUES)
_VERBS = ("wait", "travel", "rest", "roll", "gather", "drift", "climb", "settle", "turn", "hum")
_THINGS = ("parcels", "letters", "ledgers", "crates", "orders", "maps", "clerks", "lanterns")
_MANNERS = ("slowly", "by night", "in rows", "at dawn", "without end", "side by side", "twice")


def tables(scale: float, *, seed: int = 1) -> dict[str, pa.Table]:
    """Return the tables by name."""
    random = np.random.default_rng(seed)
    suppliers, parts, customers = (int(scale * n) for n in (10_000, 200_000, 150_000))
    part = _part(random, parts)
    orders, lines = _orders(random, int(scale * 1_500_000), customers, part, suppliers)
    return {
        "region": _region(random),
        "nation": _nation(random),
        "supplier": _supplier(random, suppliers),
        "part": part,
        "partsupp": _partsupp(random, parts, suppliers),
        "customer": _customer(random, customers),
        "orders": orders,
        "lineitem": lines,
    }


# --- the tables ------------------------------------------------------------------------------


def _region(random: np.random.Generator) -> pa.Table:
    return pa.table(
        {
            "r_regionkey": _int32(np.arange(len(REGIONS))),
            "r_name": pa.array(REGIONS),
            "r_comment": _comments(random, len(REGIONS)),
        }
    )


def _nation(random: np.random.Generator) -> pa.Table:
    names, regions = zip(*NATIONS, strict=True)
    return pa.table(
        {
            "n_nationkey": _int32(np.arange(len(NATIONS))),
            "n_name": pa.array(names),
            "n_regionkey": pa.array(regions, pa.int32()),
            "n_comment": _comments(random, len(NATIONS)),
        }
    )


def _supplier(random: np.random.Generator, count: int) -> pa.Table:
    keys = np.arange(1, count + 1)
    nations = random.integers(0, len(NATIONS), count)
    # One supplier in two thousand has been complained of, as many were praised.
    judged = random.integers(0, 2000, count) if count > 2000 else np.arange(count)
    comments = _marked(_comments(random, count), judged == 0, "customers made complaints")
    return pa.table(
        {
            "s_suppkey": keys,
            "s_name": _named("Supplier#", keys),
            "s_address": _addresses(random, count),
            "s_nationkey": _int32(nations),
            "s_phone": _phones(random, nations),
            "s_acctbal": _money(random.integers(-99_999, 1_000_000, count)),
            "s_comment": _marked(comments, judged == 1, "customers gave praise"),
        }
    )


def _part(random: np.random.Generator, count: int) -> pa.Table:
    keys = np.arange(1, count + 1)
    brands = random.integers(0, len(BRANDS), count)
    words = random.integers(0, len(COLOURS), (5, count))
    makers = pa.array([f"Maker#{maker}" for maker in range(1, 6)])
    return pa.table(
        {
            "p_partkey": keys,
            "p_name": pc.binary_join_element_wise(*(_picked(COLOURS, at) for at in words), " "),
            "p_mfgr": makers.take(pa.array(brands // 5)),
            "p_brand": _picked(BRANDS, brands),
            "p_type": _any(random, TYPES, count),
            "p_size": _int32(random.integers(1, 51, count)),
            "p_container": _any(random, CONTAINERS, count),
            "p_retailprice": _money(_retail_cents(keys)),
            "p_comment": _comments(random, count),
        }
    )


def _partsupp(random: np.random.Generator, parts: int, suppliers: int) -> pa.Table:
    count = 4 * parts
    part = np.repeat(np.arange(1, parts + 1), 4)
    return pa.table(
        {
            "ps_partkey": part,
            "ps_suppkey": _supplier_of(part, np.tile(np.arange(4), parts), suppliers),
            "ps_availqty": _int32(random.integers(1, 10_000, count)),
            "ps_supplycost": _money(random.integers(100, 100_001, count)),
            "ps_comment": _comments(random, count),
        }
    )


def _customer(random: np.random.Generator, count: int) -> pa.Table:
    keys = np.arange(1, count + 1)
    nations = random.integers(0, len(NATIONS), count)
    return pa.table(
        {
            "c_custkey": keys,
            "c_name": _named("Customer#", keys),
            "c_address": _addresses(random, count),
            "c_nationkey": _int32(nations),
            "c_phone": _phones(random, nations),
            "c_acctbal": _money(random.integers(-99_999, 1_000_000, count)),
            "c_mktsegment": _any(random, SEGMENTS, count),
            "c_comment": _comments(random, count),
        }
    )


def _orders(
    random: np.random.Generator, count: int, customers: int, part: pa.Table, suppliers: int
) -> tuple[pa.Table, pa.Table]:
    """Return orders and their lines; a third of the customers never order."""
    # Of 32 numbers only the first eight are keys.
    numbers = np.arange(count)
    keys = numbers // 8 * 32 + numbers % 8 + 1
    customer = random.integers(1, customers + 1, count)
    customer = np.where(customer % 3 == 0, np.maximum(customer - 1, 1), customer)
    days = random.integers(_FIRST, _LAST + 1, count)
    sizes = random.integers(1, 8, count)
    of = np.repeat(numbers, sizes)
    starts = np.cumsum(sizes) - sizes
    lines, cents, open_lines = _lines(
        random, keys[of], days[of], np.arange(len(of)) - starts[of] + 1, part, suppliers
    )
    still_open = np.add.reduceat(open_lines.astype(np.int64), starts)
    status = np.where(still_open == 0, 0, np.where(still_open == sizes, 1, 2))
    clerks = max(count // 1500, 1)
    comments = _comments(random, count)
    asked = random.random(count) < 0.01
    orders = pa.table(
        {
            "o_orderkey": keys,
            "o_custkey": customer,
            "o_orderstatus": _picked(("F", "O", "P"), status),
            "o_totalprice": _money(np.add.reduceat(cents, starts)),
            "o_orderdate": _dates(days),
            "o_orderpriority": _any(random, PRIORITIES, count),
            "o_clerk": _named("Clerk#", random.integers(1, clerks + 1, count)),
            "o_shippriority": _int32(np.zeros(count)),
            "o_comment": _marked(comments, asked, "unusual wishes, then more parcels"),
        }
    )
    return orders, lines


def _lines(
    random: np.random.Generator,
    order: Numbers,
    ordered: Numbers,
    number: Numbers,
    part: pa.Table,
    suppliers: int,
) -> tuple[pa.Table, Numbers, npt.NDArray[np.bool_]]:
    """Return order lines, what each costs in the end, in cents, and which are still open."""
    count = len(order)
    parts = random.integers(1, part.num_rows + 1, count)
    quantity = random.integers(1, 51, count)
    discount, tax = random.integers(0, 11, count), random.integers(0, 9, count)
    price = quantity * _retail_cents(parts)
    shipped = ordered + random.integers(1, 122, count)
    due = ordered + random.integers(30, 91, count)
    received = shipped + random.integers(1, 31, count)
    is_open = shipped > _TODAY
    returned = np.where(received <= _TODAY, random.integers(0, 2, count), 2)
    lines = pa.table(
        {
            "l_orderkey": order,
            "l_partkey": parts,
            "l_suppkey": _supplier_of(parts, random.integers(0, 4, count), suppliers),
            "l_linenumber": _int32(number),
            "l_quantity": _money(quantity * 100),
            "l_extendedprice": _money(price),
            "l_discount": _money(discount),
            "l_tax": _money(tax),
            "l_returnflag": _picked(("A", "R", "N"), returned),
            "l_linestatus": _picked(("F", "O"), is_open.astype(np.int64)),
            "l_shipdate": _dates(shipped),
            "l_commitdate": _dates(due),
            "l_receiptdate": _dates(received),
            "l_shipinstruct": _any(random, INSTRUCTIONS, count),
            "l_shipmode": _any(random, MODES, count),
            "l_comment": _comments(random, count),
        }
    )
    return lines, price * (100 - discount) * (100 + tax) // 10_000, is_open


# --- their values ----------------------------------------------------------------------------


def _retail_cents(part: Numbers) -> Numbers:
    """Return what a part costs: 900 to 2,100, not in the order of keys."""
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)


def _supplier_of(part: Numbers, which: Numbers, suppliers: int) -> Numbers:
    """Return one of the four suppliers of a part; they are different ones."""
    return (part + which * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def _money(cents: Numbers) -> pa.Array:
    wide = np.stack([cents, cents >> 63], axis=1)
    return pa.Array.from_buffers(_MONEY, len(cents), [None, pa.py_buffer(wide)])


def _int32(numbers: Any) -> pa.Array:
    return pa.array(numbers.astype(np.int32))


def _dates(days: Numbers) -> pa.Array:
    return _int32(days).cast(pa.date32())


def _picked(words: Sequence[str], at: Numbers) -> pa.Array:
    return pa.array(words).take(pa.array(at))


def _any(random: np.random.Generator, words: Sequence[str], count: int) -> pa.Array:
    return _picked(words, random.integers(0, len(words), count))


def _text(numbers: Numbers) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _named(prefix: str, numbers: Numbers) -> pa.Array:
    padded = pc.utf8_lpad(_text(numbers), width=9, padding="0")
    return pc.binary_join_element_wise(prefix, padded, "")


def _addresses(random: np.random.Generator, count: int) -> pa.Array:
    street = _any(random, [f"{colour} lane" for colour in COLOURS], count)
    return pc.binary_join_element_wise(street, _text(random.integers(1, 400, count)), " ")


def _phones(random: np.random.Generator, nations: Numbers) -> pa.Array:
    """Return numbers that begin with the nation's code, 10 to 34."""
    ends = (random.integers(low, high, len(nations)) for low, high in _PHONE_PARTS)
    return pc.binary_join_element_wise(_text(nations + 10), *map(_text, ends), "-")


_PHONE_PARTS = ((100, 1000), (100, 1000), (1000, 10_000))


def _comments(random: np.random.Generator, count: int) -> pa.Array:
    colour, thing = _any(random, COLOURS, count), _any(random, _THINGS, count)
    verb, manner = _any(random, _VERBS, count), _any(random, _MANNERS, count)
    return pc.binary_join_element_wise(colour, thing, verb, manner, " ")


def _marked(comments: pa.Array, chosen: npt.NDArray[np.bool_], words: str) -> pa.Array:
    longer = pc.binary_join_element_wise(comments, words, " ")
    return pc.if_else(pa.array(chosen), longer, comments)
