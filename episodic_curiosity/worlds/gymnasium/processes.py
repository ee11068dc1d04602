"""Gymnasium environments in separate processes; one that dies or freezes is replaced.

Gymnasium's AsyncVectorEnv waits forever for a process that was killed or is frozen.
Shapes: N environments.
"""

import contextlib
import logging
import math
import multiprocessing
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import (
    CloudpickleWrapper,
    batch_space,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
    write_to_shared_memory,
)
from numpy.typing import NDArray

from episodic_curiosity.support.autoreset import AutoresetMode
from episodic_curiosity.support.checks import check_timeout
from episodic_curiosity.worlds.processes.faults import MAX_RESTARTS, FaultLimit

PATIENCE = 2.0  # seconds that processes get to exit
PARENT_CHECKS = 0.5  # seconds between checks that the parent is alive
START = 60.0  # seconds that a new process gets at least: it may have to import everything

logger = logging.getLogger(__name__)

Array = NDArray[Any]
Make = Callable[[], Env[Any, Any]]


class EnvProcesses(VectorEnv[Any, Any, Array]):
    """N environments, each in a process, that reset in the same step.

    A process that dies, or does not answer for `timeout` seconds, is replaced: its episode is
    truncated at the last observation, a new one begins, and a warning is logged. An exception
    of an environment is an error in its code, and is raised.
    """

    def __init__(self, make: Make, num_envs: int, timeout: float) -> None:
        if sys.platform == "win32":
            raise OSError("vectorization 'async' needs process groups, which Windows lacks")
        check_timeout(timeout)
        with contextlib.closing(make()) as env:
            self.single_observation_space = env.observation_space
            self.single_action_space = env.action_space
            self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
            self.render_mode = env.render_mode
        self.num_envs = num_envs
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        context: Any = multiprocessing.get_context()
        memory = create_shared_memory(self.single_observation_space, num_envs, context)
        self._memory = memory
        self._timeout = timeout
        self._deadline = 0.0  # for the answers to the latest command
        self._seeds: Sequence[int | None] = [None] * num_envs
        self._restarts = np.zeros(num_envs, np.int64)
        self._faults = FaultLimit(num_envs)
        self.processes = [
            _Process(context, make, number, memory, timeout) for number in range(num_envs)
        ]
        self._dismissal = weakref.finalize(self, _dismiss, self.processes, os.getpid())

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in every environment; `seed` is a list of N or None."""
        self._seeds = [None] * self.num_envs if seed is None else seed
        requests = [{"seed": one, "options": options} for one in self._seeds]
        self._ask("reset", requests)
        answers, failures = self._await()
        self._infos = [
            self._replace(number, failures[number])[1] if answer is None else answer[1]
            for number, answer in enumerate(answers)
        ]
        return self._observed(), self._batched(self._infos)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Takes an action in every environment and begins the next episode where one ends."""
        self.begin_step(actions)
        return self.end_step()

    def begin_step(self, actions: Any) -> None:
        """Starts the step in every environment, and returns before it is complete."""
        self._ask("step", list(iterate(self.action_space, actions)))

    def end_step(self) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Awaits what `begin_step` began; returns what `step` does."""
        answers, failures = self._await()
        for number, failure in failures.items():
            _, info = self._replace(number, failure)
            before = list(iterate(self.observation_space, self._observations))
            ended = {"final_obs": before[number], "final_info": self._infos[number]}
            answers[number] = (None, 0.0, False, True, info | ended)
        is_fault = np.array([number in failures for number in range(self.num_envs)])
        if (broken := self._faults.first_beyond(is_fault)) is not None:
            self.close()
            raise ChildProcessError(
                f"environment {broken} fails again and again: {failures[broken]}"
            )
        _, reward, terminated, truncated, infos = zip(*answers, strict=True)
        self._infos = list(infos)
        return (
            self._observed(),
            np.array(reward, np.float64),
            np.array(terminated, np.bool_),
            np.array(truncated, np.bool_),
            self._batched(self._infos),
        )

    def render(self) -> tuple[Any, ...]:
        """Renders every environment."""
        self._ask("render", [None] * self.num_envs)
        answers, failures = self._await()
        if failures:
            self.close()
            raise ChildProcessError(_sentence(*next(iter(failures.items()))))
        return tuple(answers)

    def close_extras(self, **_: Any) -> None:
        """Ends all processes."""
        self._dismissal()

    def _ask(self, command: str, arguments: Sequence[Any]) -> None:
        """Sends a command to all processes."""
        if not self._dismissal.alive:
            raise RuntimeError("this world is closed")
        try:
            for process, argument in zip(self.processes, arguments, strict=True):
                process.ask(command, argument)
            # After the asking: one that is frozen may take no large command.
            self._deadline = time.monotonic() + self._timeout
        except BaseException:
            self.close()  # some have begun, others have not
            raise

    def _await(self) -> tuple[list[Any], dict[int, str]]:
        """Returns the N answers to a command, None where the process failed, and failures."""
        if not self._dismissal.alive:
            raise RuntimeError("this world is closed")
        answers: list[Any] = []
        failures = {}
        try:
            for number, process in enumerate(self.processes):
                try:
                    answers.append(process.answer(self._deadline))
                except _ProcessFailure as failure:
                    answers.append(None)
                    failures[number] = str(failure)
        except BaseException:
            self.close()  # a late answer would be taken for the next one
            raise
        return answers, failures

    def _replace(self, number: int, failure: str) -> Any:
        """Begins a new episode in a new process; returns the answer to its reset."""
        process, seed = self.processes[number], self._seeds[number]
        for _ in range(MAX_RESTARTS):
            self._restarts[number] += 1
            # Episodes of a new process must not repeat those of the first.
            again = None if seed is None else seed ^ int(self._restarts[number])
            process.restart()
            process.ask("reset", {"seed": again, "options": None})
            try:
                answer = process.answer(time.monotonic() + self._timeout)
            except _ProcessFailure as another:
                failure = str(another)
                continue
            except BaseException:
                self.close()
                raise
            logger.warning("%s; restarted", _sentence(number, failure))
            return answer
        self.close()
        raise ChildProcessError(f"environment {number} cannot be restarted: {failure}")

    def _observed(self) -> Any:
        """A copy: processes overwrite the shared memory in the next step."""
        space = self.single_observation_space
        # Read anew each time: texts are decoded here.
        self._observations = deepcopy(
            read_from_shared_memory(space, self._memory, self.num_envs)
        )
        return self._observations

    def _batched(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        batched: dict[str, Any] = {}
        for number, info in enumerate(infos):
            batched = self._add_info(batched, info, number)
        return batched


class _ProcessFailure(Exception):
    """A process has died or is frozen."""


class _Process:
    """One environment's process, leader of a group with the processes that it starts."""

    def __init__(
        self, context: Any, make: Make, number: int, memory: Any, timeout: float
    ) -> None:
        self._context, self._timeout = context, timeout
        self._arguments = (CloudpickleWrapper(make), number, memory)
        self.start()

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    def start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        _limit_waits(self._pipe, self._timeout)
        self._failure = ""  # of the latest command
        self._is_killed = False
        self._process = self._context.Process(
            target=_serve, args=(theirs, self._pipe, *self._arguments), daemon=True
        )
        self._process.start()
        self._start_until = time.monotonic() + START
        theirs.close()

    def restart(self) -> None:
        self.stop(patience=0.0)
        self.start()

    def ask(self, command: str, argument: Any) -> None:
        try:
            self._pipe.send((command, argument))
        except BlockingIOError:
            # It has got a part: no later command could be told from the rest.
            self._failure = f"took no command for {self._timeout:g} s"
            self._process.kill()
        except OSError:
            pass  # dead: `answer` says so

    def answer(self, deadline: float) -> Any:
        if self._failure:
            raise _ProcessFailure(self._failure)
        try:
            latest, self._start_until = max(deadline, self._start_until), 0.0
            if not self._pipe.poll(max(latest - time.monotonic(), 0.0)):
                raise _ProcessFailure(f"no answer for {self._timeout:g} s")
            is_good, answer = self._pipe.recv()
        except BlockingIOError:
            raise _ProcessFailure(f"no end of its answer for {self._timeout:g} s") from None
        except (EOFError, OSError):
            wait([self._process.sentinel], PATIENCE)
            self._kill()
            raise _ProcessFailure(f"exit code {self._process.exitcode}") from None
        if not is_good:
            raise ChildProcessError(f"an environment raised {answer}")
        return answer

    def stop(self, patience: float) -> None:
        """Ends the process and those it has started, by force after `patience` seconds."""
        wait([self._process.sentinel], patience)
        self._kill()
        self._pipe.close()

    def _kill(self) -> None:
        """Kills the process and those it has started, unless this was done before."""
        if self._is_killed:
            return
        self._is_killed = True
        # Not reaped yet, so its process id cannot have been reused.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()  # it may not lead a group yet
        self._process.join()


def _serve(
    pipe: Connection, parents: Connection, make: CloudpickleWrapper, number: int, memory: Any
) -> None:
    """Executes commands until the other side of the pipe is closed."""
    os.setpgrp()  # also leaves Ctrl-C in a terminal to the parent
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parents.close()
    with contextlib.suppress(ConnectionError), contextlib.ExitStack() as stack:
        try:
            env = stack.enter_context(contextlib.closing(make()))
            while (request := _received(pipe)) is not None:
                answer = _executed(env, *request, number, memory)
                with contextlib.suppress(ConnectionError):  # the next read ends this
                    pipe.send((True, answer))
        except Exception as error:
            traceback.print_exc()
            reason = str(error).partition("\n")[0]
            pipe.send((False, f"{type(error).__name__}: {reason}"))


def _die_with(parent: int) -> None:
    """Kills this process and those it has started once its parent has ended.

    Runs in a thread: the environment may be frozen, or in a long step.
    """
    while os.getppid() == parent:
        time.sleep(PARENT_CHECKS)
    os.killpg(0, signal.SIGKILL)


def _received(pipe: Connection) -> tuple[str, Any] | None:
    """The next command and its argument, None if the parent closes or has died."""
    try:
        command, argument = pipe.recv()
    except (EOFError, ConnectionError):
        return None
    return None if command == "close" else (command, argument)


def _executed(env: Env[Any, Any], command: str, argument: Any, number: int, memory: Any) -> Any:
    """The answer to a command; observations go to the shared memory."""
    space = env.observation_space
    if command == "render":
        return env.render()
    if command == "reset":
        observation, info = env.reset(**argument)
        write_to_shared_memory(space, number, observation, memory)
        return None, info
    observation, reward, terminated, truncated, info = env.step(argument)
    if terminated or truncated:
        ended = {"final_obs": observation, "final_info": info}
        observation, info = env.reset()
        info = info | ended
    write_to_shared_memory(space, number, observation, memory)
    return None, reward, terminated, truncated, info


def _limit_waits(pipe: Connection, seconds: float) -> None:
    """Makes a read or write that waits longer fail.

    A process may freeze within its answer, or before it has read a command.
    """
    with socket.socket(fileno=os.dup(pipe.fileno())) as ours:
        limit = struct.pack("ll", math.ceil(seconds), 0)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _sentence(number: int, failure: str) -> str:
    return f"the process of environment {number}: {failure}"


def _dismiss(processes: list[_Process], owner: int) -> None:
    """Ends all processes together; does nothing in a fork of the owner."""
    if os.getpid() != owner:
        return
    for process in processes:
        process.ask("close", None)
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        process.stop(max(deadline - time.monotonic(), 0.0))
