x = torch.tensor(2.0, requires_grad=True)
y = x ** 2
y.backward()
print(x.grad) # tensor(4.)
z = 3 * x
z.backward()
print(x.grad) # tensor(7.)
