"""A broker's log as the pipeline sees it: in directories, or from a running broker."""
