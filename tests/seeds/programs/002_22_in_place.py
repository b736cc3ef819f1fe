x = torch.randn(3, requires_grad=True)
y = x ** 2
x.add_(1.0) # may break autograd
loss = y.sum()
loss.backward()
