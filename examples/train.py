"""Trains a small neural network on all nodes of a job at once, with nothing but Python's standard library.

Each rank has its share of the points of two interleaved half circles and computes gradients on it; before each step
the gradients of all ranks are averaged over TCP, so every rank takes the same step. That is what data parallel
training does with NCCL on GPUs. The ranks find each other by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE; rank 0
writes the model to TOWLINE_RESULTS_DIR.
"""

from __future__ import annotations

import json
import math
import os
import random
import socket
import struct
import time
from pathlib import Path

RANK, WORLD_SIZE = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
MASTER = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500")))
POINTS, HIDDEN, EPOCHS, LEARNING_RATE = 600, 16, 500, 1.0
PATIENCE = 60.0  # seconds until a rank that does not show up is an error

Point = tuple[float, float, float]


class AllReduce:
    """Averages lists of numbers over all ranks; rank 0 collects, adds and hands the sum back."""

    def __init__(self) -> None:
        self.peers: list[socket.socket] = []
        if WORLD_SIZE == 1:
            return
        if RANK == 0:
            with socket.create_server(("", MASTER[1])) as server:
                server.settimeout(PATIENCE)
                self.peers = [server.accept()[0] for _ in range(WORLD_SIZE - 1)]
        else:
            self.peers = [connect(time.monotonic() + PATIENCE)]

    def average(self, numbers: list[float]) -> list[float]:
        """The mean over the ranks, number by number."""
        form = struct.Struct(f"!{len(numbers)}d")
        if RANK == 0:
            shares = [numbers, *(form.unpack(receive(peer, form.size)) for peer in self.peers)]
            numbers = [sum(column) / WORLD_SIZE for column in zip(*shares, strict=True)]
        for peer in self.peers:
            peer.sendall(form.pack(*numbers))
        return numbers if RANK == 0 else list(form.unpack(receive(self.peers[0], form.size)))


def connect(deadline: float) -> socket.socket:
    """A connection to rank 0, which may start later than this rank."""
    while True:
        try:
            return socket.create_connection(MASTER, timeout=PATIENCE)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def receive(peer: socket.socket, size: int) -> bytes:
    """Exactly so many bytes."""
    data = b""
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            raise ConnectionError("another rank is gone")
        data += piece
    return data


def half_circles(seed: int) -> list[Point]:
    """Points of two classes that no straight line separates."""
    source = random.Random(seed)
    points: list[Point] = []
    for index in range(POINTS):
        label, angle = index % 2, source.uniform(0, math.pi)
        x, y = math.cos(angle), math.sin(angle)
        x, y = (1 - x, 0.5 - y) if label else (x, y)
        points.append((x + source.gauss(0, 0.1), y + source.gauss(0, 0.1), float(label)))
    return points


def gradient(model: list[float], points: list[Point]) -> tuple[list[float], float, float]:
    """Gradient, mean loss and share of right answers of a two-layer network on the points."""
    slope, loss, right = [0.0] * len(model), 0.0, 0
    last = 4 * HIDDEN
    for x, y, label in points:
        active = [math.tanh(model[4 * h] * x + model[4 * h + 1] * y + model[4 * h + 2]) for h in range(HIDDEN)]
        score = model[last] + sum(model[4 * h + 3] * value for h, value in enumerate(active))
        guess = 1 / (1 + math.exp(-score))
        loss -= math.log(max(1e-12, guess if label else 1 - guess))
        right += (guess > 0.5) == bool(label)
        error = (guess - label) / len(points)
        slope[last] += error
        for h, value in enumerate(active):
            inner = error * model[4 * h + 3] * (1 - value * value)
            slope[4 * h] += inner * x
            slope[4 * h + 1] += inner * y
            slope[4 * h + 2] += inner
            slope[4 * h + 3] += error * value
    return slope, loss / len(points), right / len(points)


def main() -> None:
    """Train, and let rank 0 tell how it goes and keep the result."""
    print(f"rank {RANK} of {WORLD_SIZE} on {socket.gethostname()}", flush=True)
    ranks, points = AllReduce(), half_circles(seed=RANK)
    source = random.Random(0)
    model = [source.uniform(-1, 1) for _ in range(4 * HIDDEN + 1)]
    loss = accuracy = 0.0
    for epoch in range(1, EPOCHS + 1):
        slope, loss, accuracy = gradient(model, points)
        *slope, loss, accuracy = ranks.average([*slope, loss, accuracy])
        model = [weight - LEARNING_RATE * part for weight, part in zip(model, slope, strict=True)]
        if RANK == 0 and (epoch == 1 or epoch % 50 == 0):
            print(f"epoch {epoch:3}  loss {loss:.4f}  accuracy {accuracy:.1%}", flush=True)
    if RANK == 0:
        result = {"ranks": WORLD_SIZE, "epochs": EPOCHS, "loss": loss, "accuracy": accuracy, "model": model}
        Path(os.environ.get("TOWLINE_RESULTS_DIR", "."), "model.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
