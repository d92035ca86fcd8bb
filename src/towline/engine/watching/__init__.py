"""What becomes of a job: looked at, judged, followed to its end."""
