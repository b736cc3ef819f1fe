import torch

# Device configuration
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# Input tensor
N = 50
input_size = 10
X = torch.randn(N, input_size, device=device, requires_grad=True)

# First layer
W1 = torch.randn(input_size, 20, device=device, requires_grad=True)
b1 = torch.randn(1, 20, device=device, requires_grad=True)
hidden1 = torch.relu(X @ W1 + b1)

# Second layer
W2 = torch.randn(20, 1, device=device, requires_grad=True)
b2 = torch.randn(1, 1, device=device, requires_grad=True)
output = hidden1 @ W2 + b2

# Loss
target = torch.randn(N, 1, device=device)
loss = torch.mean((output - target)**2)

# Backward pass
loss.backward()

# Print out the gradients
print(f"Gradient of W1:\n{W1.grad}")
print(f"Gradient of b1:\n{b1.grad}")
print(f"Gradient of W2:\n{W2.grad}")
print(f"Gradient of b2:\n{b2.grad}")
