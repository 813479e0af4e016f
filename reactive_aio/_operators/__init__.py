"""What happens to elements: families of operators, one function each, bound in ``flow``."""
