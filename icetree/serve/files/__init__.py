"""How clients reach a table's files: with keys lent to them, or requests signed for them."""
