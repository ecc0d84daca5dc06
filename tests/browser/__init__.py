"""A package, so that its tests share a browser that ends with them."""
