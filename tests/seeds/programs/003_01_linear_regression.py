import torch

# Input data
x = torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
y = torch.tensor([[2.0], [4.0], [5.0]])

# Model parameters
w = torch.randn(1, requires_grad=True)
b = torch.randn(1, requires_grad=True)

# Forward pass
y_pred = w * x + b
loss = torch.mean((y_pred - y)**2) # Mean Squared Error

# Backward pass
loss.backward()

# Gradients
print("Gradient of w:", w.grad)
print("Gradient of b:", b.grad)
