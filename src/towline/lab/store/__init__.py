"""Where data comes from on the lab: moto's S3 with keys that count, and a web server, on the controller's address."""
