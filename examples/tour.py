"""A tour of Rushlight (`make demo`): programs written for torch, a network trained, the usual mistakes."""

import inspect
import math
import sys
import time
import warnings
from pathlib import Path

_start = time.perf_counter()
import rushlight as torch  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _start

from mistakes import ALL as MISTAKES  # noqa: E402
from terminal import UNICODE, WIDTH, block, chart, heading, paint, progress  # noqa: E402

from rushlight import nn  # noqa: E402
from rushlight._alias import TorchFinder  # noqa: E402

SEEDS = Path(__file__).resolve().parent.parent / "tests" / "seeds"


def welcome() -> None:
    print(paint(f"\nRushlight {torch.__version__}", "bold", "yellow"))
    print(f"PyTorch's gradient system, imported in {IMPORT_SECONDS * 1000:.0f} ms.\n")
    x = torch.tensor(3.0, requires_grad=True)
    y = x**2 + 2 * x
    y.backward()
    block(
        "import rushlight as torch\n\n"
        "x = torch.tensor(3.0, requires_grad=True)\n"
        "y = x**2 + 2 * x\n"
        "y.backward()",
        "cyan",
    )
    print(f"\n  x.grad is {paint(str(x.grad), 'bold')}: the slope of x² + 2x at 3 is 2·3 + 2.")


CHECK = paint("✓" if UNICODE else "=", "green")

# The title of each document, and the program of it that is shown in full.
DOCUMENTS = {
    "000": ("How to obtain the gradient of output with respect to input", "000_01_linear_regression"),
    "001": ("How can I compute gradients", "001_02_linear_transformation"),
    "002": ("Gradient computation", "002_11_accumulation"),
    "003": ("How does PyTorch calculate gradients in sample code", "003_02_custom_function"),
}


def documents() -> None:
    """Every program of four documents about torch, `import torch` meaning Rushlight; one of each in full."""
    sys.path.insert(0, str(SEEDS))
    sys.meta_path.insert(0, TorchFinder())
    import seed_programs

    heading("Programs written for torch, unchanged")
    print(f"{CHECK} stands where the output is what torch 2.13 prints, character for character.\n")
    for number, (title, in_full) in DOCUMENTS.items():
        print(f"{paint(title, 'bold')}\n")
        for program in seed_programs.TABLE:
            if program.name.startswith(number):
                show_program(program, seed_programs.run(program), program.name == in_full)
        print()


def show_program(program, outcome, in_full: bool) -> None:
    mark = CHECK if outcome.output == program.expected_output() else " "
    name = program.name[7:].replace("_", " ")
    if in_full:
        print(f"\n{mark} {paint(name, 'bold')}")
        block(program.source(), "cyan")
        block(outcome.output, bar="┃")
        print()
        return
    if outcome.error is not None:
        first = f"{type(outcome.error).__name__}: {str(outcome.error).splitlines()[0]}"
    else:
        first = " ".join(outcome.output.split())
    room = WIDTH - 26
    print(f"{mark} {name:22} {first if len(first) <= room else first[: room - 3] + '...'}")


STEPS = 1500


def training() -> None:
    heading("Training a network")
    print("Two hidden layers of 32 learn sin(3x) + x²/4 from 128 points, with Adam:\n")
    torch.manual_seed(0)
    x = torch.linspace(-3, 3, 128).reshape(-1, 1)
    y = torch.sin(3 * x) + x**2 / 4
    model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    start = time.perf_counter()
    for _ in progress(range(STEPS), "training"):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - start

    print(f"  {STEPS} steps in {seconds:.2f} s, {seconds / STEPS * 1e6:.0f} µs each.\n")
    print(paint("log10 of the loss over the steps", "bold"))
    print(chart([([math.log10(value) for value in losses], "green")]))
    print(f"\n  from {losses[0]:.4f} to {paint(f'{losses[-1]:.6f}', 'bold', 'green')}\n")
    with torch.no_grad():
        learned = model(x)
    print(paint("what it learned", "bold", "cyan") + ", over " + paint("what it was shown", "blue"))
    print(chart([(y.flatten().tolist(), "blue"), (learned.flatten().tolist(), "cyan")]))


def mistakes() -> None:
    heading("The usual mistakes, and what Rushlight says")
    for mistake in MISTAKES:
        lines, _ = inspect.getsourcelines(mistake)
        print(paint(inspect.getdoc(mistake) or mistake.__name__, "bold"))
        block(inspect.cleandoc("\n".join(["", *(line.rstrip("\n") for line in lines[2:])])), "cyan")
        block(said_by(mistake), "red", bar="┃")
        print()


def said_by(mistake) -> str:
    """The error that the function raises, or the warning that it causes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mistake()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    if not caught:
        raise AssertionError(f"{mistake.__name__} went unnoticed")
    return "\n".join(f"{warning.category.__name__}: {warning.message}" for warning in caught)


def farewell() -> None:
    command = paint(f"{sys.executable} -m rushlight program.py", "bold")
    print(f"Run your own: {command}")
    print("`import torch` will mean Rushlight. Run it in another directory: here Python finds the source")
    print("before what is installed.\n")


if __name__ == "__main__":
    welcome()
    documents()
    training()
    mistakes()
    farewell()
