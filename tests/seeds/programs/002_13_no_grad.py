model.eval()
with torch.no_grad():
    pred = model(X)
