"""The rules of the papers, one file each: pure functions on Gram matrices, coordinates and weights."""
