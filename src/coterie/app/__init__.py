"""The local web app, ``coterie app``: a server over the jobs, and the page that it serves.

Importing this package is cheap. The server listens first, and loads the libraries while the browser opens.
"""
