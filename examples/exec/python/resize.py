#!/usr/bin/env python3
"""A handler of kind `resize`: measures pictures and publishes each of them once, whatever is killed meanwhile.

    aegis worker --kind resize --protocol 1..2 --exec examples/exec/python/resize.py
    aegis task submit resize --input '{"pictures": ["a.png", "b.png"], "album": "/tmp/album"}' --wait

The album is a file with a line per published picture; it stands for any service that can be asked by operation id. So
publishing is `queryable`: when an answer was lost the next attempt asks first, and never publishes twice.

Protocol 1 of the input had one `picture`; protocol 2 has `pictures`.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import aegis_handler  # noqa: E402
from aegis_handler import Probe, TaskError  # noqa: E402


def upcast(task):
    """Brings an input of protocol 1 to protocol 2."""
    if task.input_protocol == 1 and "picture" in task.input:
        return {**task.input, "pictures": [task.input["picture"]]}
    return task.input


def measure(path):
    """Stands for work that takes a while and touches nothing outside."""
    return {"width": 64 * len(path), "height": 48 * len(path)}


def publish(album, path, size):
    def call(about):
        # One line, written at once and made durable: this is the effect.
        line = f"{about.id} {path} {size['width']}x{size['height']}\n".encode()
        file = os.open(album, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, line)
            os.fsync(file)
        finally:
            os.close(file)
        return {"published": path}

    return call


def published(album, path):
    def probe(about):
        try:
            with open(album, encoding="utf-8") as file:
                found = any(line.split(" ", 1)[0] == about.id for line in file)
        except FileNotFoundError:
            found = False
        return Probe.happened({"published": path}) if found else Probe.DID_NOT_HAPPEN

    return probe


def resize(task):
    wanted = upcast(task)
    if not isinstance(wanted, dict) or not isinstance(wanted.get("pictures"), list) or not wanted.get("album"):
        raise TaskError("input_invalid", "write {\"pictures\": [\"a.png\"], \"album\": \"FILE\"}", retryable=False)
    done = task.saved or {"published": 0}
    for number, path in enumerate(wanted["pictures"]):
        task.stop_if_cancelled()
        # By what it is, not by how often the loop ran: after a crash it starts again from the top.
        size = task.step("measure", path, lambda path=path: measure(path))
        task.operation(
            "publish",
            path,
            publish(wanted["album"], path, size),
            cls="queryable",
            probe=published(wanted["album"], path),
            request={"path": path, "size": size},
            timeout_ms=2000,
            quiet_ms=wanted.get("quiet_ms", 5000),
        )
        if number + 1 > done["published"]:
            done = {"published": number + 1}
            task.checkpoint(done)
    task.log(f"published {len(wanted['pictures'])} pictures")
    return {"published": len(wanted["pictures"])}


if __name__ == "__main__":
    aegis_handler.run(resize)
