"""Services: a front that speaks HTTP, and the workers behind it that hold the model."""
