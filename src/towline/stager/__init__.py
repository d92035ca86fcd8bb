"""What a staging job runs on the cluster: brings data from elsewhere to the shared file system, and results away.

It is sent there as one file and runs with the Python that is there, 3.6 and later, on nothing but its standard library;
where a profile names an environment or a container with fsspec, that brings the data. So it is written in that old
language, and imports nothing of the house.
"""
