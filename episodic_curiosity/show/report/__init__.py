"""Self-contained HTML pages and Markdown tables of results."""
