import torch

# Define the tensors on the GPU.
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

N = 100
features = 2
X = torch.randn(N, features, device=device)
W = torch.randn(features, 1, device=device, requires_grad=True)
b = torch.randn(1, 1, device=device, requires_grad=True)

# Compute the output
Y = X @ W + b

# Define a loss function (MSE)
Y_target = torch.randn(N, 1, device=device)
loss = torch.mean((Y - Y_target)**2)

# Calculate the gradients
loss.backward()

# Access the gradients for W and b
W_grad = W.grad
b_grad = b.grad

print(f"Gradient of W:\n{W_grad}")
print(f"Gradient of b:\n{b_grad}")
