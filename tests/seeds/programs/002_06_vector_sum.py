loss = y.sum()
loss.backward()
print(x.grad) # tensor([2., 4., 6.])
