"""The site and the package: links, pages, texts and metadata."""
