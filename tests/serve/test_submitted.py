"""What is held of work that goes on without its request: no more than what became of it."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Callable

from icetree.errors import NotFound, Unavailable
from icetree.serve.waiting.submitted import Submitted, Ticket
from icetree.serve.waiting.workers import Workers
from icetree.store.stopping import Stop


class Large:
    """What a plan comes to."""


def ended(plans: Submitted[Large], make: Callable[[], Large]) -> Ticket[Large]:
    """Have something made under an id, and return what that stands for afterwards."""
    go_on = threading.Event()

    def later() -> Large:
        assert go_on.wait(timeout=30)
        return make()

    work = plans.start(later, Stop())
    id = plans.keep(work, "asked", 10, "who", "t")
    assert id is not None
    go_on.set()
    assert plans.ends(work, within_s=math.inf)
    del work
    for _ in range(3_000):
        found = plans.find(id, "who", "t")
        assert found is not None
        if found.work is None:
            return found
        threading.Event().wait(0.01)
    raise AssertionError("the work does not end")


def test_what_a_plan_came_to_is_not_held_with_its_id() -> None:
    plans, made = Submitted[Large](Workers()), list[weakref.ref[Large]]()

    def make() -> Large:
        made.append(weakref.ref(found := Large()))
        return found

    assert ended(plans, make).error is None
    gc.collect()
    assert made[0]() is None
    plans.close()


def test_nor_is_what_was_at_hand_when_it_failed() -> None:
    plans, made = Submitted[Large](Workers()), list[weakref.ref[Large]]()

    def fail() -> Large:
        made.append(weakref.ref(found := Large()))
        try:
            raise NotFound(f"{type(found)} is gone")
        except NotFound as error:
            raise Unavailable("silent") from error

    assert isinstance(ended(plans, fail).error, Unavailable)
    gc.collect()
    assert made[0]() is None
    plans.close()


def test_no_id_is_forgotten_for_others_while_its_work_goes_on() -> None:
    plans, go_on = Submitted[Large](Workers()), threading.Event()

    def wait() -> Large:
        assert go_on.wait(timeout=30)
        return Large()

    work = plans.start(wait, Stop())
    id = plans.keep(work, "asked", 10, "who", "t")
    assert id is not None
    for number in range(40):
        other = plans.start(Large, Stop())
        # As large as any may be; it may have ended before it is kept.
        plans.keep(other, "asked", 1 << 20, f"who {number}", "t")
        plans.ends(other)
    found = plans.find(id, "who", "t")
    assert found is not None
    assert found.work is work
    go_on.set()
    plans.close()
