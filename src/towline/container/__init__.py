"""Image references and container options as Pyxis and Enroot spell them. No I/O."""
