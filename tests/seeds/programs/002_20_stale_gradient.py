loss.backward()
optimizer.step()
# next iteration
loss.backward()
optimizer.step()
