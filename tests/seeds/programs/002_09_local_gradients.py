x = torch.tensor(2.0, requires_grad=True)
y = torch.tensor(3.0, requires_grad=True)
a = x + y
z = a ** 2
z.backward()
print(x.grad) # tensor(10.)
print(y.grad) # tensor(10.)
