"""What a type checker says about a program of a user: checked by `make lint`, not run."""

from collections.abc import Iterator
from typing import Any, assert_type

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn
from rushlight.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layer(x)) * self.scale + 1


class Points(Dataset[tuple[Tensor, int]]):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.rand(2, dtype=torch.float32), index

    def __len__(self) -> int:
        return 10


net = Net().to("cpu").train()
assert_type(net, Net)
assert_type(net.layer, nn.Linear)
assert_type(net.parameters(), Iterator[nn.Parameter])
assert_type(net.state_dict(), dict[str, Any])
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
assert_type(optimizer, torch.optim.Adam)
loader: DataLoader[tuple[Tensor, int]] = DataLoader(Points(), batch_size=2)
for x, _ in loader:
    loss = F.mse_loss(net(x), torch.zeros(2, 3))
    assert_type(loss, Tensor)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

t = torch.arange(6.0).reshape(2, 3)
assert_type(t, Tensor)
assert_type(1 - t / 2, Tensor)
assert_type(t @ t.T, Tensor)
assert_type(t == 1, Tensor)
assert_type(t[0, 1:], Tensor)
assert_type(t.shape, torch.Size)
assert_type(t.size(0), int)
assert_type(t.dtype, torch.dtype)
assert_type(t.device, torch.device)
assert_type(t.grad, Tensor | None)
assert_type(t.item(), int | float)
assert_type(t.exp().sum(dim=0), Tensor)
assert_type(t.split(1), tuple[Tensor, ...])
assert_type(torch.cat([t, t]), Tensor)
assert_type(torch.equal(t, t), bool)
assert_type(torch.linalg.norm(t), Any)
with torch.no_grad():
    t.add_(1)
t.no_such_method()  # type: ignore[attr-defined]
torch.no_such_function()  # type: ignore[attr-defined]
