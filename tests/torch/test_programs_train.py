"""Training loops as tutorials and repositories write them: every loss as in torch, step by step."""

import copy
import io
import math

import pytest
import torch as torch_itself
from torch.nn.utils import prune  # noqa: F401  (not imported by torch itself)

import rushlight

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def train(torch, parameters, loss_of_step, steps=8, optimizer=None, **options):
    """The losses of a few steps."""
    optimizer = optimizer or torch.optim.Adam(parameters, **{"lr": 1e-2} | options)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of_step(step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@program
def dcgan(torch):
    nn = torch.nn
    make = nn.Sequential(
        nn.ConvTranspose2d(4, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 1, 4, bias=False), nn.Sigmoid(), nn.Flatten(0),
    )  # fmt: skip
    for module in (*make, *judge):
        if "Conv" in type(module).__name__:
            nn.init.normal_(module.weight, 0.0, 0.02)
    criterion, losses = nn.BCELoss(), []
    options = {"lr": 2e-3, "betas": (0.5, 0.999)}
    maker, judges = (torch.optim.Adam(net.parameters(), **options) for net in (make, judge))
    real = torch.tanh(torch.randn(8, 3, 8, 8))
    for _ in range(4):
        judge.zero_grad()
        label = torch.full((8,), 1.0)
        error = criterion(judge(real), label)
        error.backward()
        fake = make(torch.randn(8, 4, 1, 1))
        error = criterion(judge(fake.detach()), label.fill_(0.0))
        error.backward()
        judges.step()
        make.zero_grad()
        deceit = criterion(judge(fake), label.fill_(1.0))
        deceit.backward()
        maker.step()
        losses += [error.item(), deceit.item()]
    return losses


@program
def tied_language_model(torch):
    nn, F = torch.nn, torch.nn.functional
    embed, rnn, decode = nn.Embedding(20, 12), nn.LSTM(12, 12, 2, dropout=0.2), nn.Linear(12, 20)
    decode.weight = embed.weight
    nets = nn.ModuleList([embed, rnn, decode])
    text = torch.cumsum(torch.randint(0, 3, (61, 4)), 0) % 20
    hidden, losses = None, []
    for start in range(0, 60, 10):
        nets.zero_grad()
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden)
        out, hidden = rnn(embed(text[start : start + 10]), hidden)
        loss = F.cross_entropy(decode(out).view(-1, 20), text[start + 1 : start + 11].reshape(-1))
        loss.backward()
        losses += [loss.item(), float(nn.utils.clip_grad_norm_(nets.parameters(), 0.25))]
        for parameter in nets.parameters():
            parameter.data.add_(parameter.grad, alpha=-5.0)
    return losses


@program
def small_gpt(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)
            self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.Dropout(0.1))

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (z.view(b, t, 2, 8).transpose(1, 2) for z in self.qkv(self.ln1(x)).split(c, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.mlp(self.ln2(x))

    body = nn.ModuleDict(
        {"wte": nn.Embedding(20, 16), "wpe": nn.Embedding(8, 16), "h": nn.ModuleList([Block(), Block()])}
    )
    head = nn.Linear(16, 20, bias=False)
    body["wte"].weight = head.weight
    decay = [p for p in body.parameters() if p.dim() >= 2]
    plain = [p for p in body.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    text, losses = torch.randint(0, 20, (3, 9)), []
    for _ in range(6):
        for _ in range(2):
            x = body["wte"](text[:, :-1]) + body["wpe"](torch.arange(8))
            for block in body["h"]:
                x = block(x)
            loss = F.cross_entropy(head(x).view(-1, 20), text[:, 1:].reshape(-1)) / 2
            loss.backward()
        norm = nn.utils.clip_grad_norm_(body.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        losses += [loss.item(), norm.item(), *schedule.get_last_lr()]
    return losses


@program
def message_passing(torch):
    nn, F = torch.nn, torch.nn.functional
    features, labels = torch.randn(12, 5), torch.randint(3, (12,))
    source, target = torch.randint(12, (2, 40))
    there, here, out = nn.Linear(5, 8), nn.Linear(5, 8), nn.Linear(8, 3)

    def loss(step):
        sent = there(features)[source]
        total = torch.zeros(12, 8).index_add_(0, target, sent)
        count = torch.zeros(12).scatter_add_(0, target, torch.ones(40)).clamp(min=1)
        most = torch.full((12, 8), -1e9).scatter_reduce(0, target[:, None].expand(-1, 8), sent, "amax")
        most = torch.where(most < -1e8, torch.zeros_like(most), most)
        return F.cross_entropy(out(F.relu(total / count[:, None] + here(features) + most)), labels)

    return train(torch, [*there.parameters(), *here.parameters(), *out.parameters()], loss, weight_decay=1e-3)


@program
def style_transfer(torch):
    nn, F = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))
    net.requires_grad_(False)
    gram = lambda f: (f.flatten(1) @ f.flatten(1).t()).div(f.numel())
    wanted = gram(net(torch.rand(1, 3, 8, 8))[0])
    image = torch.rand(1, 3, 8, 8).requires_grad_(True)
    optimizer, losses = torch.optim.LBFGS([image], max_iter=6), []

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        loss = 1e4 * F.mse_loss(gram(net(image)[0]), wanted)
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
    optimizer.step(closure)
    return losses


@program
def residual_network(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
            self.short = nn.Conv2d(width, out, 1, stride) if stride > 1 else nn.Identity()

        def forward(self, x):
            out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
            out += self.short(x)
            return F.relu(out, inplace=True)

    net = nn.Sequential(Block(3, 3, 1), nn.MaxPool2d(3, 2, 1), Block(3, 6, 2), nn.AdaptiveAvgPool2d(1))
    net = nn.Sequential(net, nn.Flatten(), nn.Linear(6, 4))
    x, y = torch.randn(6, 3, 12, 12), torch.randint(4, (6,))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    return train(torch, None, lambda step: F.cross_entropy(net(x), y, label_smoothing=0.1), optimizer=sgd)


@program
def diffusion(torch):
    nn, F = torch.nn, torch.nn.functional
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 20), 0)
    time = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8))
    into, norm, out = nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Conv2d(4, 1, 3, padding=1)
    data = torch.rand(6, 1, 6, 6) * 2 - 1

    def loss(step):
        t = torch.randint(0, 20, (6,))
        angle = t[:, None] * torch.exp(torch.arange(4) * -(math.log(100) / 3))
        shift, scale = time(torch.cat((angle.sin(), angle.cos()), -1))[:, :, None, None].chunk(2, dim=1)
        noise = torch.randn_like(data)
        share = kept.gather(-1, t).reshape(6, 1, 1, 1)
        hidden = norm(into(share.sqrt() * data + (1 - share).sqrt() * noise))
        return F.smooth_l1_loss(out(F.silu(hidden * (scale + 1) + shift)), noise)

    nets = nn.ModuleList([time, into, norm, out])
    return train(torch, nets.parameters(), loss)


@program
def normalising_flow(torch):
    nn = torch.nn
    masks = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    nets = nn.ModuleList([nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 4)) for _ in masks])
    prior = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    x = torch.randn(20, 2) * torch.tensor([0.5, 2.0]) + 1

    def loss(step):
        z, change = x, x.new_zeros(len(x))
        for mask, net in zip(masks, nets, strict=True):
            scale, shift = net(z * mask).chunk(2, dim=1)
            scale = torch.tanh(scale) * (1 - mask)
            z = z * mask + (1 - mask) * (z - shift) * torch.exp(-scale)
            change = change - scale.sum(1)
        return -(prior.log_prob(z) + change).mean()

    return train(torch, nets.parameters(), loss)


@program
def burgers_equation(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 1))
    inside = torch.rand(30, 2, requires_grad=True)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=8, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        u = net(inside)
        (du,) = torch.autograd.grad(u, inside, torch.ones_like(u), create_graph=True)
        (second,) = torch.autograd.grad(du[:, [0]], inside, torch.ones_like(u), create_graph=True)
        residual = du[:, [1]] + u * du[:, [0]] - 0.01 * second[:, [0]]
        edge = net(inside * torch.tensor([1.0, 0.0])) - torch.sin(math.pi * inside[:, [0]])
        loss = residual.pow(2).mean() + edge.pow(2).mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
    return losses


@program
def meta_learning(torch):
    F = torch.nn.functional
    weights = [torch.randn(8, 1), torch.zeros(8), torch.randn(1, 8) / 3, torch.zeros(1)]
    weights = [w.requires_grad_() for w in weights]
    run = lambda x, w: F.linear(torch.tanh(F.linear(x, w[0], w[1])), w[2], w[3])

    def loss(step):
        total = 0
        for _ in range(2):
            height, x = torch.rand(1), torch.rand(10, 1) * 4
            inner = weights
            for _ in range(2):
                error = F.mse_loss(run(x, inner), height * torch.sin(x))
                grads = torch.autograd.grad(error, inner, create_graph=True)
                inner = [w - 0.05 * g for w, g in zip(inner, grads, strict=True)]
            total = total + F.mse_loss(run(x + 1, inner), height * torch.sin(x + 1))
        return total

    return train(torch, weights, loss)


@program
def fixed_point_layer(torch):
    nn, F = torch.nn, torch.nn.functional
    inner, outer, read = nn.Linear(4, 4, bias=False), nn.Linear(4, 4), nn.Linear(4, 1)
    inner.weight.data.mul_(0.3)
    x = torch.randn(10, 4)
    y = torch.sin(x.sum(1, keepdim=True))
    cell = lambda z: torch.tanh(inner(z) + outer(x))

    def loss(step):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(30):
                z = cell(z)
        z = cell(z)
        start = z.clone().detach().requires_grad_()
        once = cell(start)

        def solve(grad):
            g = grad
            for _ in range(30):
                g = torch.autograd.grad(once, start, g, retain_graph=True)[0] + grad
            return g

        z.register_hook(solve)
        return F.mse_loss(read(z), y)

    return train(torch, [*inner.parameters(), *outer.parameters(), *read.parameters()], loss)


@program
def gradient_penalty(torch):
    nn = torch.nn
    judge = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    real, fake = torch.randn(12, 2) + 2, torch.randn(12, 2)

    def loss(step):
        share = torch.rand(12, 1).expand_as(real)
        between = (share * real + (1 - share) * fake).requires_grad_(True)
        grads = torch.autograd.grad(
            judge(between), between, torch.ones(12, 1), create_graph=True, retain_graph=True
        )[0]
        penalty = ((grads.norm(2, dim=1) - 1) ** 2).mean() * 10
        return judge(fake).mean() - judge(real).mean() + penalty

    return train(torch, judge.parameters(), loss, betas=(0.0, 0.9))


@program
def straight_through_and_gumbel(torch):
    nn, F = torch.nn, torch.nn.functional

    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sign()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            g = g.clone()
            g[x.abs() > 1] = 0
            return g

    first, second = nn.Linear(5, 6), nn.Linear(6, 5)
    x = torch.randn(12, 5)

    def loss(step):
        code = F.gumbel_softmax(Sign.apply(first(x)).view(-1, 2, 3), tau=0.7, hard=step % 2 == 0)
        return F.mse_loss(second(code.flatten(1)), x)

    return train(torch, [*first.parameters(), *second.parameters()], loss)


@program
def reading_with_ctc(torch):
    nn = torch.nn
    look, rnn, out = (
        nn.Conv2d(1, 4, (6, 3), padding=(0, 1)),
        nn.GRU(4, 6, bidirectional=True),
        nn.Linear(12, 5),
    )
    images, lengths = torch.randn(3, 1, 6, 10), torch.tensor([2, 3, 1])
    texts = torch.randint(1, 5, (6,))
    ctc = nn.CTCLoss(zero_infinity=True)

    def loss(step):
        seen = torch.relu(look(images)).squeeze(2).permute(2, 0, 1)
        return ctc(out(rnn(seen)[0]).log_softmax(2), texts, torch.full((3,), 10), lengths)

    return train(torch, nn.ModuleList([look, rnn, out]).parameters(), loss)


@program
def packed_sentences(torch):
    nn, F = torch.nn, torch.nn.functional
    pack, unpack = nn.utils.rnn.pack_padded_sequence, nn.utils.rnn.pad_packed_sequence
    sentences = [torch.randint(1, 15, (n,)) for n in (7, 5, 4, 2)]
    lengths, labels = torch.tensor([len(s) for s in sentences]), torch.tensor([0, 1, 1, 0])
    padded = nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    losses = []
    for kind in (nn.RNN, nn.LSTM, nn.GRU):
        embed, out = nn.Embedding(15, 6, padding_idx=0), nn.Linear(10, 2)
        rnn = kind(6, 5, 2, batch_first=True, bidirectional=True)

        def loss(step, embed=embed, rnn=rnn, out=out):
            states, _ = rnn(pack(embed(padded), lengths, batch_first=True))
            return F.cross_entropy(out(unpack(states, batch_first=True)[0].max(1).values), labels)

        losses += train(torch, nn.ModuleList([embed, rnn, out]).parameters(), loss, steps=4)
    return losses


@program
def contrastive_and_distilled(torch):
    nn, F = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    teacher, x = copy.deepcopy(net).eval(), torch.randn(10, 6)
    mask = torch.eye(20, dtype=torch.bool)

    def loss(step):
        z = torch.cat([net(x + 0.1 * torch.randn_like(x)), net(x * (torch.rand_like(x) > 0.2))])
        z = F.normalize(z, dim=1)
        alike = (z @ z.T / 0.5).masked_fill(mask, float("-inf"))
        with torch.no_grad():
            wanted = F.softmax(teacher(x) / 2, dim=-1)
        taught = F.kl_div(F.log_softmax(net(x) / 2, dim=-1), wanted, reduction="batchmean")
        return F.cross_entropy(alike, torch.arange(20).roll(10)) + taught

    return train(torch, net.parameters(), loss)


@program
def averaged_and_resumed(torch):
    nn, F = torch.nn, torch.nn.functional
    x, y = torch.randn(12, 5), torch.randint(3, (12,))
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    averaged = torch.optim.swa_utils.AveragedModel(net)
    losses, sgd = [], torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.swa_utils.SWALR(sgd, swa_lr=0.05, anneal_epochs=2)
    for _ in range(4):
        losses += train(torch, None, lambda step: F.cross_entropy(net(x), y), steps=2, optimizer=sgd)
        averaged.update_parameters(net)
        schedule.step()
    torch.optim.swa_utils.update_bn([x[:6], x[6:]], averaged)
    losses.append(F.cross_entropy(averaged(x), y).item())
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "sgd": sgd.state_dict(), "rng": torch.get_rng_state()}, file)
    for parameter in net.parameters():
        nn.init.zeros_(parameter)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    net.load_state_dict(saved["net"])
    again = torch.optim.SGD(net.parameters(), lr=1.0)
    again.load_state_dict(saved["sgd"])
    torch.set_rng_state(saved["rng"])
    return losses + train(torch, None, lambda step: F.cross_entropy(net(x), y), steps=3, optimizer=again)


@program
def pruned_with_cam(torch):
    nn, F = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
    seen = {}
    net[0].register_forward_hook(lambda module, inputs, out: seen.update(out=out.detach()))
    net[0].register_full_backward_hook(lambda module, gi, go: seen.update(grad=go[0]))
    x = torch.randn(4, 3, 7, 7, requires_grad=True)
    nn.utils.prune.l1_unstructured(net[0], "weight", amount=0.3)
    nn.utils.prune.ln_structured(net[4], "weight", amount=0.4, n=2, dim=1)
    losses = train(torch, net.parameters(), lambda step: F.cross_entropy(net(x), torch.tensor([0, 1, 2, 0])))
    cam = F.relu((seen["grad"].mean((2, 3), keepdim=True) * seen["out"]).sum(1, keepdim=True))
    cam = F.interpolate(cam, (14, 14), mode="bilinear", align_corners=False)
    nn.utils.prune.remove(net[0], "weight")
    return [*losses, cam.sum().item(), float((net[0].weight == 0).sum()), *map(float, net[4].weight[0])]


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_as_in_torch(name):
    results = []
    for torch in (rushlight, torch_itself):
        torch.manual_seed(1)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the work is too small for more
        torch.set_default_dtype(torch.float64)  # rounding of float32 would grow from step to step
        try:
            results.append(PROGRAMS[name](torch))
        finally:
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(threads)
    ours, theirs = results
    assert len(ours) == len(theirs)
    for step, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a == pytest.approx(b, rel=1e-7, abs=1e-10), f"value {step}: {a}, torch {b}"
