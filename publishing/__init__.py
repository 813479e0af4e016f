"""What turns this repository into a site and a package.

`metadata` completes the metadata of the package when it is built. `hooks` are called by MkDocs:
`pages` says which files are pages, `links` changes the links between them, `api` and `docstrings`
prepare the API, `llms` writes the texts for language models, and `offline` checks that the site
loads nothing from elsewhere. `release` builds the package, checks it and tries it.
"""
