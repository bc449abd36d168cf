"""Output of the demo: a progress bar, and the loss curve in the terminal and as a PNG."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from .supervised import Curve


def progress_bar(console: Console) -> Progress:
    """Return a bar with count, time and latest figures."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[figures]}"),
        console=console,
    )


def show_sample(console: Console, title: str, prompt: bytes, sampled: bytes) -> None:
    """Print a prompt and the model's continuation."""
    text = Text(prompt.decode("utf-8", "replace"), style="bold")
    text.append(sampled.decode("utf-8", "replace"), style="cyan")
    console.print(Panel(text, title=title, title_align="left"))


def draw_in_terminal(console: Console, curve: Curve, entropy: float) -> None:
    """Print the loss curve as text."""
    import plotext  # noqa: PLC0415  (only this function needs it)

    plotext.clear_figure()
    plotext.plot_size(min(console.width, 100), 18)
    plotext.theme("clear")
    plotext.title("loss, nats per byte")
    plotext.xlabel("step")
    plotext.plot(*_axes(curve.train), label="training batch")
    plotext.plot(*_axes(curve.held_out), label="held-out text", marker="o")
    plotext.hline(entropy)
    console.print(Text.from_ansi(plotext.build()))
    console.print(f"The level line is the text's unigram entropy, {entropy:.3f}.")


def draw_png(file: Path, curve: Curve, entropy: float, name: str) -> None:
    """Write the loss curve as a PNG."""
    import matplotlib as mpl  # noqa: PLC0415  (slow to load, and only this function needs it)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 4.5))
    axes.plot(*_axes(curve.train), color="#9ecae1", label="training batch")
    axes.plot(*_axes(curve.held_out), color="#08519c", marker="o", markersize=3, label="held-out text")
    axes.axhline(entropy, color="#d95f0e", linestyle="--", label=f"unigram entropy, {entropy:.3f}")
    axes.set(xlabel="step", ylabel="loss, nats per byte", title=f"LoRA on {name}")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _axes(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in points], [loss for _, loss in points]
