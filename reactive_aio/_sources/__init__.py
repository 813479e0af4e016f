"""Where elements come from: families of sources, one function each."""
