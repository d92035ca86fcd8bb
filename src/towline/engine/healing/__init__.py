"""The monitor outside of the job: next attempts after ends that no script inside could see or act on."""
