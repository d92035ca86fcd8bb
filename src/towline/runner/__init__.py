"""What a job of `towline.tao.script_runner.build_entrypoint` runs in its container.

It brings the inputs, writes the configuration, runs the command and takes the outputs away. It is packed into the
job's command together with `towline.stager` and runs with the Python of the image, 3.8 and later, on nothing but its
standard library; so it is written in that language, and imports nothing else of the house.
"""
