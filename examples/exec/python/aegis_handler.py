"""Speaks the Aegis exec protocol, version 1, for a handler in Python. Standard library only.

    import aegis_handler

    def resize(task):
        size = task.step("measure", task.input["path"], lambda: measure(task.input["path"]))
        return {"size": size}

    aegis_handler.run(resize)

What always holds:
- After a crash `resize` starts again from its top; steps and operations that are done answer from the store. So each has a
  name and a key of its own, never a counter of calls.
- A call of an operation is only made after Aegis has made its dispatch durable, and not when the worker's eligibility may
  have run out meanwhile.
- Standard output belongs to the protocol: what is printed goes to standard error, which Aegis logs.
"""

import json
import os
import queue
import signal
import sys
import threading
import time

VERSION = 1


class TaskError(Exception):
    """Raise it to end the attempt: tried again with back-off (retryable), or given up at once."""

    def __init__(self, code, message, retryable=True, details=None, retry_after_s=None):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.retryable = code, message, retryable
        self.details, self.retry_after_s = details, retry_after_s


class Snooze(Exception):
    """Raise it to postpone the task, without a charge."""

    def __init__(self, seconds):
        super().__init__(f"postponed by {seconds} s")
        self.seconds = seconds


class Cancelled(Exception):
    """Raised by `Task.stop_if_cancelled`. Let it pass: what stopped because it was asked to is not charged."""


class Over(Exception):
    """The engine ended this attempt. Let it pass."""


class Refused(Exception):
    """An operation has no result, for good: refused by the other side, or undone or given up by a person."""

    def __init__(self, answer, message, detail=None):
        super().__init__(f"{answer}: {message}")
        self.answer, self.message, self.detail = answer, message, detail


class Outcome(Exception):
    """Raise one of those below inside a call to say what became of it. Any other exception counts as doubtful."""

    word = "doubtful"

    def __init__(self, message, detail=None):
        super().__init__(message)
        self.message, self.detail = message, detail


class Failed(Outcome):
    """The other side refused for sure, and always will."""

    word = "failed"


class TurnedAway(Outcome):
    """Turned away before anybody looked at it: not authorised, say."""

    word = "turned_away"


class NotApplied(Outcome):
    """Surely not applied, and it may be tried again: it could not even connect."""

    word = "not_applied"


class Doubtful(Outcome):
    """Nobody knows."""


class Probe:
    """What a probe found out."""

    def __init__(self, found, result=None):
        self.found, self.result = found, result

    @classmethod
    def happened(cls, result):
        return cls("happened", result)


Probe.DID_NOT_HAPPEN = Probe("did_not_happen")
Probe.CANNOT_TELL = Probe("cannot_tell")


class Call:
    """What a call or a probe may tell the other side, and until when it may be made."""

    def __init__(self, reply, asked_at):
        #: The operation's id: the idempotency key. The same in every attempt.
        self.id = reply["operation"]
        #: The other side should refuse an older one.
        self.fencing_token = reply["fencing_token"]
        #: How many times it was dispatched.
        self.dispatches = reply["dispatches"]
        #: An answer that takes longer counts as lost.
        self.timeout_s = reply["timeout_ms"] / 1000
        self._until = asked_at + reply["valid_for_ms"] / 1000

    def left_s(self):
        """How long the call may still be made."""
        return self._until - _now()


class Task:
    """One attempt of a task."""

    def __init__(self, start, line):
        self.id, self.kind, self.queue = start["task"], start["kind"], start["queue"]
        self.epoch, self.fencing_token = start["epoch"], start["fencing_token"]
        self.input, self.input_protocol = start["input"], start["input_protocol"]
        self.writes, self.reads = start["writes"], start["reads"]
        self.failures, self.crashes = start["failures"], start["crashes"]
        self.settling, self.trace = start["settling"], start["trace"]
        stored = start["checkpoint"]
        #: The latest checkpoint of earlier attempts, or None; and the protocol that it was written in.
        self.saved = stored["value"] if stored else None
        self.saved_protocol = stored["protocol"] if stored else None
        self._line = line

    @property
    def cancelled(self):
        """Why it should stop, or None."""
        return self._line.cancelled

    def stop_if_cancelled(self):
        """For long loops."""
        if self.cancelled:
            raise Cancelled(self.cancelled)

    def step(self, name, key, work):
        """Does `work()` once for the task, whatever the number of attempts; gives its value."""
        reply = self._ask("step", name=name, key=str(key))
        if reply["answer"] == "known":
            return reply["value"]
        value = work()
        self._ask("save_step", name=name, key=str(key), value=value)
        return value

    def checkpoint(self, value):
        """Saves progress that the next attempt finds in `saved`."""
        self._ask("checkpoint", value=value)

    def operation(self, name, key, call, cls="blind", request=None, probe=None, **how):
        """Does something outside, at most as often as its class allows; gives its result.

        `cls` says how it is recovered when an answer is lost: idempotent, fenced (both are repeated under the same id),
        queryable (needs `probe`, which is asked first), blind (a person decides). `how`: timeout_ms, quiet_ms,
        key_retention_ms, margin_ms, repeats, version.
        """
        if (cls == "queryable") != (probe is not None):
            raise ValueError("`probe` belongs to class queryable, and to no other")
        place = {"name": name, "key": str(key)}
        how = {field: value for field, value in how.items() if value is not None}
        reply = self._ask("operation", **place, **{"class": cls}, request=request, **how)
        while True:
            answer = reply["answer"]
            if answer == "call":
                reply = self._ask("settle", **place, **_called(call, Call(reply, reply["asked_at"])))
            elif answer == "probe":
                found = probe(Call(reply, reply["asked_at"]))
                reply = self._ask("probed", **place, found=found.found, result=found.result)
            elif answer == "done":
                return reply["result"]
            else:
                raise Refused(answer, reply.get("message", ""), reply.get("detail"))

    def progress(self):
        """Says that it moves."""
        self._line.say({"type": "progress"})

    def log(self, message, level="info"):
        """A line for the worker's log."""
        self._line.say({"type": "log", "level": level, "message": str(message)})

    def _ask(self, kind, **fields):
        reply = self._line.ask({"type": kind, **fields})
        if reply["answer"] == "error":
            if reply["over"]:
                raise Over(reply["message"])
            raise TaskError(reply["code"], reply["message"], reply["retryable"])
        return reply


class _Line:
    """The two pipes. A thread reads, so that a cancellation is seen while the handler works."""

    def __init__(self):
        # What anybody prints must not end up between the messages.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)
        self._in = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
        self._lock, self._id = threading.Lock(), 0
        self._waiting = {}
        self.cancelled = None

    def say(self, message):
        with self._lock:
            self._out.write(json.dumps(message, separators=(",", ":"), ensure_ascii=False) + "\n")
            self._out.flush()

    def hear(self):
        line = self._in.readline()
        if not line.endswith("\n"):
            return None
        return json.loads(line)

    def ask(self, message):
        answer = queue.SimpleQueue()
        # Before it is sent: what the reply allows is counted from here.
        asked_at = _now()
        with self._lock:
            self._id += 1
            number = self._waiting[self._id] = answer
            message = {"type": message.pop("type"), "id": self._id, **message}
            self._out.write(json.dumps(message, separators=(",", ":"), ensure_ascii=False) + "\n")
            self._out.flush()
        reply = number.get()
        if reply is None:
            raise Over("the worker is gone")
        reply["asked_at"] = asked_at
        return reply

    def read_on(self):
        try:
            while (message := self.hear()) is not None:
                if message["type"] == "reply":
                    self._waiting.pop(message["id"]).put(message)
                elif message["type"] == "cancel":
                    self.cancelled = message["cause"]
        finally:
            # The worker is gone: nothing that this process does is accepted any more.
            for answer in list(self._waiting.values()):
                answer.put(None)


def _called(call, about):
    if about.left_s() <= 0:
        return {"outcome": "not_applied", "message": "the worker's eligibility may have run out before the call"}
    try:
        return {"outcome": "succeeded", "result": call(about)}
    except Outcome as outcome:
        return {"outcome": outcome.word, "message": outcome.message, "detail": outcome.detail}
    except Exception as error:  # pylint: disable=broad-except
        # It may have happened: only the class of the operation can help now.
        return {"outcome": "doubtful", "message": f"{type(error).__name__}: {error}"}


def _now():
    # Goes on while the machine sleeps, as the worker's clock does.
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def run(handler):
    """Runs `handler(task)` once and tells how it ended. Call it last; it ends the process."""
    # The message that comes with the signal says why; `Task.cancelled` shows it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    line = _Line()
    hello = line.hear()
    if hello is None:
        sys.exit(0)
    # When there is no common version this one is said all the same, and the worker says what is wrong.
    line.say({"type": "hello", "version": VERSION})
    start = line.hear()
    if start is None:
        # Only asked whether it can be a handler.
        sys.exit(0)
    threading.Thread(target=line.read_on, daemon=True).start()
    try:
        line.say({"type": "result", "value": handler(Task(start, line))})
    except Snooze as snooze:
        line.say({"type": "snooze", "for_ms": int(snooze.seconds * 1000)})
    except TaskError as error:
        after_ms = None if error.retry_after_s is None else int(error.retry_after_s * 1000)
        line.say({"type": "error", "code": error.code, "message": error.message, "retryable": error.retryable,
                  "details": error.details, "retry_after_ms": after_ms})
    except Refused as refused:
        # The answer stands for ever, so no retry mends it.
        line.say({"type": "error", "code": "operation_" + refused.answer, "message": str(refused), "retryable": False,
                  "details": refused.detail})
    except (Cancelled, Over):
        sys.exit(0)
    sys.exit(0)
