x = torch.tensor(2.0)
y = x ** 2
# y.backward() fails because y does not require gradients
