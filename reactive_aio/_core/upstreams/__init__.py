"""Several upstreams: their subscribers, and the coordinators that combine them."""
