"""Let writers live on a table in trouble, kill some, and judge at the end."""

from __future__ import annotations

import time

import pyarrow as pa

from campaigns.soak.company import Company
from campaigns.soak.place import TABLE
from campaigns.soak.servers import Ground, in_trouble
from campaigns.soak.verdict import settle, verdict

SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("s", pa.string())])
PROPERTIES = {
    "write.root.max-data-entries": "40",
    "write.root.max-delete-entries": "20",
    "write.leaf.max-entries": "200",
    "write.metadata.inline-snapshots": "20",
    "write.manifest-dv.inline-max-bytes": "64",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.max-wait-ms": "200",
}
#: In a life that is shorter, memory still grows to what is needed.
_GROWN_FROM = 500


def soak(ground: Ground, commits: int, every_s: float) -> list[str]:
    """Run, print how it goes, and return what went wrong."""
    with ground.calm.open() as lake:
        lake.create_namespace("db")
        lake.create_table(TABLE, SCHEMA, properties=PROPERTIES)
    company = Company(ground.place, commits)
    with in_trouble(ground, every_s):
        kills, grown = _watch(company, commits)
    wrong = company.failed() + grown
    met = settle(ground.calm)
    for what, trouble in (("struck", ground.struck()), ("met by writers", met)):
        print(f"{what}: {', '.join(f'{n} {kind}' for kind, n in trouble.items()) or 'nothing'}")
    print(f"{kills} writers were killed; verifying", flush=True)
    count, found = verdict(ground.calm)
    if count < commits:
        wrong.append(f"only {count} snapshots for {commits} commits")
    return wrong + found


def _watch(company: Company, commits: int) -> tuple[int, list[str]]:
    """Kill now and then until the writers are done; tell how often, and of memory that grew."""
    started, told, kills, late = time.monotonic(), 0, 0, 0
    early_at, early = min(2_000, commits // 2), 0
    step, kill_every = max(commits // 20, 1), max(commits // 40, 25)
    while company.is_working():
        time.sleep(0.25)
        done, rss = company.count.value, company.resident_kib()
        early = early or (rss if done >= early_at else 0)
        if done >= told + step:
            told = done
            rate = done / (time.monotonic() - started)
            print(f"{done:>7,} commits  {rate:6.1f}/s  RSS {rss / 1024:6.1f} MiB", flush=True)
            late = rss
        if done < commits * 0.9 and done // kill_every > kills and company.kill_one():
            kills += 1
    print(f"RSS {early / 1024:.1f} MiB at commit {early_at:,}, {late / 1024:.1f} MiB at the end")
    grown = commits >= _GROWN_FROM and early and late > 1.5 * early
    return kills, [f"memory grew from {early:,} to {late:,} KiB"] if grown else []
