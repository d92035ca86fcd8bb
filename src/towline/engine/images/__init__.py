"""Images of registries as files on the shared file system, made by jobs of their own before any GPU is allocated."""
