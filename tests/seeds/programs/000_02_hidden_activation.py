import torch

# Define the device
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# Input tensor
N = 10
input_size = 3
X = torch.randn(N, input_size, device=device, requires_grad=True)

# Transformation
W = torch.randn(input_size, 5, device=device, requires_grad=True)
hidden = X @ W

# Activation function
activated_hidden = torch.relu(hidden)

# Perform backpropagation (assuming a loss depending on activated_hidden
# We use a dummy loss just for the example
dummy_loss = torch.mean(activated_hidden**2)

dummy_loss.backward()

# Gradients with respect to the input X.
X_grad = X.grad
W_grad = W.grad

print(f"Gradient of X:\n{X_grad}")
print(f"Gradient of W:\n{W_grad}")
