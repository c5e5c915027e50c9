"""Pages, the web SDK and the documentation, as browsers get them."""
