import torch

# Create a tensor that requires gradients to be calculated
x = torch.tensor(2.0, requires_grad=True)
y = 2 * x**2 + 3

# Call .backward() to compute gradients
y.backward()

# Access the gradient through .grad attribute
print(x.grad) # Output: tensor(8.)
