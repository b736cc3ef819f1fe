def f(x):
    return x ** 2
x = torch.tensor(3.0, requires_grad=True)
y = f(x)
y.backward()
autograd_grad = x.grad.item()
eps = 1e-4
finite_diff_grad = (f(torch.tensor(3.0 + eps)) - f(torch.tensor(3.0 - eps))) / (2 * eps)
print(autograd_grad)
print(finite_diff_grad.item())
