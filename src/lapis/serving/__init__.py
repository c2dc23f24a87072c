"""Models as web services: the front that takes requests, and the workers that answer them."""
