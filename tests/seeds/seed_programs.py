"""The programs of the four documents, how to run one, and what the documents take for granted around it.

Each program stands as printed in programs/NAME.py; what torch 2.13 prints for it after `torch.manual_seed(0)`
stands in programs/NAME.out (`python tests/seeds/record.py` writes these, with torch). Document 002 prints
fragments: the names they use without defining them come from `given`, or from the fragment they continue.
"""

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"

LINEAR = """\
model = torch.nn.Linear(3, 1)
X = torch.randn(8, 3)
"""
TRAINING = (
    LINEAR
    + """\
y = torch.randn(8, 1)
loss_fn = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""
)
LOSS = TRAINING + "loss = loss_fn(model(X), y)\n"


@dataclass(frozen=True)
class Program:
    name: str
    given: str = ""  # what the document assumes to exist
    continues: str | None = None  # the fragment that the document continues with this one
    shows: tuple[
        str, ...
    ] = ()  # expressions printed after the program, where it prints too little to judge by
    raises: tuple[type, str] | None = None  # what torch does with it, whatever the document says

    def source(self) -> str:
        return (PROGRAMS / f"{self.name}.py").read_text()

    def expected_output(self) -> str:
        return (PROGRAMS / f"{self.name}.out").read_text()


PARAMETERS = ("model.weight", "model.bias", "model.weight.grad", "model.bias.grad")

TABLE = [
    Program("000_01_linear_regression", shows=("loss",)),
    Program("000_02_hidden_activation", shows=("dummy_loss",)),
    Program("000_03_multi_layer_network", shows=("loss", "X.grad[0]")),
    Program("001_01_scalar", shows=("y",)),
    Program("001_02_linear_transformation", shows=("loss", "X.grad")),
    Program("001_03_zero_grad"),
    Program("002_01_scalar"),
    Program("002_02_two_variables", shows=("L",)),
    Program("002_03_matrix", shows=("W", "W.grad", "torch.equal(W.grad, 2 * W)")),
    Program("002_04_scalar_loss", shows=("x.grad",)),
    Program("002_05_vector_output", shows=("y",)),
    Program("002_06_vector_sum", continues="002_05_vector_output"),
    Program("002_07_upstream_gradient"),
    Program("002_08_chain_rule", shows=("z",)),
    Program("002_09_local_gradients"),
    Program("002_10_linear_layer", shows=("Y", "layer.weight.grad", "layer.bias.grad")),
    Program("002_11_accumulation"),
    Program("002_12_clear_gradients", given=LOSS, shows=PARAMETERS),
    Program("002_13_no_grad", given=LINEAR, shows=("pred", "pred.requires_grad", "model.training")),
    Program("002_14_inference_mode", given=LINEAR, shows=("pred", "pred.is_inference()", "model.training")),
    Program("002_15_optimizer", shows=("loss", *PARAMETERS)),
    Program("002_16_training_step", given=TRAINING, shows=("loss", *PARAMETERS)),
    Program("002_17_gradient_check"),
    Program("002_18_missing_gradient", shows=("y", "y.requires_grad", "y.grad_fn")),
    Program("002_19_missing_gradient_fix", shows=("x",)),
    # The document means a new loss in the next iteration; as printed, the first graph is gone.
    Program(
        "002_20_stale_gradient",
        given=LOSS,
        shows=PARAMETERS,
        raises=(RuntimeError, "Trying to backward through the graph a second time"),
    ),
    Program("002_21_stale_gradient_fix", given=LOSS, shows=PARAMETERS),
    # The document says "may break": on a leaf it is refused at once.
    Program(
        "002_22_in_place",
        shows=("x", "y"),
        raises=(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation."),
    ),
    Program("003_01_linear_regression", shows=("loss", "x.grad")),
    Program("003_02_custom_function", shows=("y",)),
    # The document prints a gradient here; the loss is a vector, and torch refuses it.
    Program(
        "003_03_vector_loss",
        shows=("loss", "x.grad"),
        raises=(RuntimeError, "grad can be implicitly created only for scalar outputs"),
    ),
]


@dataclass
class Outcome:
    output: str
    error: BaseException | None
    names: dict


def run(program: Program) -> Outcome:
    """Runs a program with whatever `import torch` means now."""
    by_name = {p.name: p for p in TABLE}
    names: dict = {"__name__": "__main__"}
    output, error = io.StringIO(), None
    exec("import torch\ntorch.manual_seed(0)\n" + program.given, names)
    if program.continues is not None:
        execute(by_name[program.continues], names)
    expected_error = program.raises[0] if program.raises else ()
    with contextlib.redirect_stdout(output):
        try:
            execute(program, names)
        except expected_error as caught:
            error = caught
        for expression in program.shows:
            print(expression, "=", eval(expression, names))
    return Outcome(output.getvalue(), error, names)


def execute(program: Program, names: dict) -> None:
    path = PROGRAMS / f"{program.name}.py"
    exec(compile(program.source(), str(path), "exec"), names)
