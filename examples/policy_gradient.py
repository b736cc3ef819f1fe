"""A policy-gradient agent (REINFORCE) that learns to balance a pole; the environment is written here."""

import math

from picture import save_curves
from terminal import progress

import rushlight as torch


class Pole:
    """A pole on a cart, pushed left or right; the episode ends when it falls or after `limit` steps."""

    def __init__(self, limit: int):
        self.limit = limit

    def reset(self, noise: list[float]) -> list[float]:
        self.state, self.steps = [0.05 * (2 * value - 1) for value in noise], 0
        return self.state

    def step(self, action: int) -> tuple[list[float], bool]:
        x, speed, angle, turn = self.state
        force = 10.0 if action else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        push = (force + 0.05 * turn**2 * sin) / 1.1
        angular = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        sideways = push - 0.05 * angular * cos / 1.1
        self.state = [x + 0.02 * speed, speed + 0.02 * sideways, angle + 0.02 * turn, turn + 0.02 * angular]
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state, fallen or self.steps >= self.limit


def play(policy, environment: Pole):
    """One episode: the logarithms of the chosen probabilities."""
    state, over, chosen = environment.reset(torch.rand(4).tolist()), False, []
    while not over:
        choice = torch.distributions.Categorical(logits=policy(torch.tensor(state)))
        action = choice.sample()
        chosen.append(choice.log_prob(action))
        state, over = environment.step(int(action))
    return torch.stack(chosen)


def fit(episodes: int, limit: int = 200):
    """The lengths of the episodes, the losses and the policy."""
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    environment = Pole(limit)
    lengths, losses = [], []
    for _ in progress(range(episodes), "policy"):
        log_probabilities = play(policy, environment)
        # A reward of one for each step: what is still to come counts, discounted.
        returns, value = [], 0.0
        for _ in range(len(log_probabilities)):
            value = 1.0 + 0.98 * value
            returns.append(value)
        worth = torch.tensor(returns[::-1])
        worth = (worth - worth.mean()) / (worth.std() + 1e-6)
        loss = -(log_probabilities * worth).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(len(returns))
        losses.append(loss.item())
    return lengths, losses, policy


def train(steps: int) -> list[float]:
    lengths, losses, _ = fit(steps, limit=40)
    return losses + [float(length) for length in lengths]


if __name__ == "__main__":
    lengths, _, _ = fit(300)
    print(
        f"the pole stood {sum(lengths[:20]) / 20:.0f} steps at first, {sum(lengths[-20:]) / 20:.0f} at last"
    )
    print(save_curves("policy_gradient.svg", {"steps until the pole falls": lengths}, "Balancing a pole"))
