model.eval()
with torch.inference_mode():
    pred = model(X)
