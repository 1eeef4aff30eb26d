"""What `stagewright export` writes with: the exporters of the tool and of installed packages."""
